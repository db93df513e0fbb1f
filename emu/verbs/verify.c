/* longhaul-emu verify: requested beside measured. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "configs/units.h"
#include "emu/host/wish_json.h"
#include "emu/verbs/output.h"
#include "emu/verbs/verbs.h"
#include "emu/verbs/verify_parts.h"
#include "emu/verify/judge.h"

enum { ADDRESS_MAX = 64, BYSTANDER_PROBES = 200 };
#define INTERVAL_S 10e-3
#define INTERVAL_JITTERS 5 /* deviations of the jitter: probes this far apart do not wait for each other */
#define GRACE_S 0.5

struct verification {
    const struct verify_arguments *arguments;
    int stop_fd;
    FILE *progress; /* NULL: none */
    char address[ADDRESS_MAX], bystander_address[ADDRESS_MAX];
    struct verify_wish wish;
    struct expected expected[2];
    double interval_s;
    struct measured measured, bystander;
    struct judgement judgement;
};

/* The address by which to reach a host. */
static int find_address(const char *host, const char *given, const char *flag, char address[ADDRESS_MAX],
                        struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = given ? AI_NUMERICHOST : 0}, *found = NULL;
    int code = getaddrinfo(given ? given : host, NULL, &hints, &found);
    if (code && given)
        return err_set(err, EINVAL, "%s: '%s' is no IP address; right would be 10.2.0.1 or fd00:2::1", flag, given);
    if (code)
        return err_set(err, EINVAL, "no address of '%s' is known (%s); give it with %s", host, gai_strerror(code),
                       flag);
    code = getnameinfo(found->ai_addr, found->ai_addrlen, address, ADDRESS_MAX, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    return code ? err_set(err, EINVAL, "%s: %s", host, gai_strerror(code)) : 0;
}

/* Ctrl-C and its like become readable, so that the responder is ended too. */
static int open_stop(struct err *err)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 ? fd : err_set(err, errno, "no signalfd: %s", strerror(errno));
}

static double rtt_of(const struct verification *it)
{
    return it->expected[OUT].delay_mean_s + it->expected[BACK].delay_mean_s;
}

/* A probe as the qdisc counts it. */
static double frame_bytes(const struct verification *it)
{
    enum { ETHERNET = 14, UDP = 8, IPV4 = 20, IPV6 = 40 };
    bool six = strchr(it->address, ':') != NULL;
    return (double)it->arguments->payload_bytes + ETHERNET + UDP + (six ? IPV6 : IPV4);
}

static int expect(struct verification *it, struct err *err)
{
    int rc = 0;
    double jitter_s = 0;
    for (int i = OUT; !rc && i <= BACK; i++) {
        rc = expect_direction(&it->wish.direction[i], frame_bytes(it), &it->expected[i], err);
        jitter_s = fmax(jitter_s, (double)it->wish.direction[i].jitter_ns / 1e9);
    }
    it->interval_s =
        it->arguments->interval_s > 0 ? it->arguments->interval_s : fmax(INTERVAL_S, INTERVAL_JITTERS * jitter_s);
    return rc;
}

static double spread_of(const struct verification *it)
{
    return sqrt(it->expected[OUT].delay_variance + it->expected[BACK].delay_variance);
}

/* TCP in the direction that is limited, out if both are; buffers and window for the bandwidth-delay product. */
static void plan_goodput(const struct verification *it, struct probe_plan *plan)
{
    const double bits_per_byte = 8, least = 4 << 20, most = 1 << 30, unlimited = 100e9;
    plan->goodput_s = it->arguments->goodput_s;
    plan->goodput_direction =
        isfinite(it->expected[OUT].rate_bit_per_s) || !isfinite(it->expected[BACK].rate_bit_per_s) ? OUT : BACK;
    double rate = it->expected[plan->goodput_direction].rate_bit_per_s;
    double product = fmin(rate, unlimited) * (rtt_of(it) + 4 * spread_of(it)) / bits_per_byte;
    plan->buffer_bytes = (uint32_t)fmin(most, fmax(least, 4 * product));
    if (isfinite(rate))
        plan->window_bytes = (uint32_t)fmin(most, fmax(least, 1.5 * product));
    plan->warmup_s = 0.5 + 30 * rtt_of(it);
}

/* Probes one host; starts a responder there unless one runs. */
static int probe(struct verification *it, const char *host, struct probe_plan *plan, struct measured *measured,
                 struct err *err)
{
    const struct verify_arguments *arguments = it->arguments;
    struct responder responder = {.input = -1, .output = -1};
    int rc = 0;
    plan->payload_bytes = arguments->payload_bytes;
    plan->grace_s = GRACE_S + 2 * rtt_of(it) + 8 * spread_of(it);
    plan->stop_fd = it->stop_fd;
    if (!plan->key) {
        rc = responder_start(arguments->rsh, host, arguments->program, plan->address, it->stop_fd, &responder, err);
        plan->port = responder.port;
        plan->key = responder.key;
    }
    rc = rc ? rc : probe_run(plan, it->progress, measured, err);
    responder_stop(&responder);
    return rc;
}

static int probe_peer(struct verification *it, struct err *err)
{
    const struct verify_arguments *arguments = it->arguments;
    struct probe_plan plan = {.address = it->address,
                              .port = arguments->port,
                              .key = arguments->key,
                              .probes = arguments->probes,
                              .interval_s = it->interval_s};
    plan_goodput(it, &plan);
    int rc = probe(it, arguments->peer, &plan, &it->measured, err);
    if (!rc)
        judge_path(&it->measured, it->expected, it->interval_s, arguments->relative, &it->judgement);
    return rc;
}

static int probe_bystander(struct verification *it, struct err *err)
{
    struct probe_plan plan = {.address = it->bystander_address, .probes = BYSTANDER_PROBES, .interval_s = INTERVAL_S};
    int rc = probe(it, it->arguments->bystander, &plan, &it->bystander, err);
    if (rc)
        err_prefix(err, "bystander");
    else
        judge_bystander(&it->bystander, it->arguments->bystander_rtt_s, &it->judgement);
    return rc;
}

static void print_requested(const struct verification *it)
{
    static const char *const names[] = {[OUT] = "out: ", [BACK] = "back:"};
    bool named = strcmp(it->wish.path, it->address) != 0;
    printf("%s%s%s%s, requested by %s\n", named ? it->wish.path : "", named ? " (" : "", it->address, named ? ")" : "",
           !strcmp(it->wish.source, "applied")    ? "what is applied here"
           : !strcmp(it->wish.source, "scenario") ? "the scenario"
                                                  : "flags");
    for (int i = OUT; i <= BACK; i++) {
        char *text = it->wish.asked[i] ? impairment_text(&it->wish.direction[i]) : NULL;
        printf("  %s %s\n", names[i], text ? text : "nothing (one-sided)");
        free(text);
    }
}

static void print_goodput(const struct goodput *goodput)
{
    char sender[32], receiver[32];
    if (!goodput->known)
        return;
    printf("TCP %s: %s, MSS %" PRIu32 " byte, MTU %" PRIu32 " byte, buffers %s (sender) and %s (receiver), %" PRIu64
           " retransmits, over %.3f s\n",
           goodput->direction == OUT ? "out" : "back", goodput->congestion, goodput->mss_bytes, goodput->mtu_bytes,
           units_format(goodput->sndbuf_bytes, DIM_BYTES, 4, sender, sizeof sender),
           units_format(goodput->rcvbuf_bytes, DIM_BYTES, 4, receiver, sizeof receiver), goodput->retransmits,
           goodput->time_s);
}

static void print(const struct verification *it)
{
    char interval[32];
    size_t judged = 0, out = 0;
    for (size_t i = 0; i < it->judgement.count; i++) {
        judged += it->judgement.checks[i].judged;
        out += !it->judgement.checks[i].good;
    }
    print_requested(it);
    printf("  %" PRIu64 " probes of %" PRIu64 " byte, %s apart\n\n", it->arguments->probes,
           it->arguments->payload_bytes, units_format(it->interval_s, DIM_TIME, 4, interval, sizeof interval));
    judgement_print(stdout, &it->judgement, options_colour(stdout));
    puts("");
    print_goodput(&it->measured.goodput);
    if (out)
        printf("%zu of %zu figures %s OUT of tolerance\n", out, judged, out == 1 ? "is" : "are");
    else
        printf("all %zu figures are as requested, within tolerance\n", judged);
}

static json_t *requested_json(const struct verification *it, enum direction direction)
{
    return it->wish.asked[direction] ? impairment_to_json(&it->wish.direction[direction]) : json_null();
}

static json_t *to_json(const struct verification *it)
{
    const struct verify_arguments *arguments = it->arguments;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:o, s:o}, s:{s:I, s:f, s:I}, s:o, s:o, s:o, s:b}", "schema",
                     "longhaul.emu-verify/1", "peer", arguments->peer, "address", it->address, "path", it->wish.path,
                     "requested_by", it->wish.source, "requested", "out", requested_json(it, OUT), "back",
                     requested_json(it, BACK), "probes", "count", (json_int_t)arguments->probes, "interval_s",
                     it->interval_s, "payload_bytes", (json_int_t)arguments->payload_bytes, "measured",
                     measured_json(&it->measured), "bystander",
                     arguments->bystander ? measured_json(&it->bystander) : json_null(), "checks",
                     judgement_json(&it->judgement), "ok", judgement_good(&it->judgement));
}

static int verify(struct verification *it, struct err *err)
{
    const struct verify_arguments *arguments = it->arguments;
    int rc = find_address(arguments->peer, arguments->address, "--address", it->address, err);
    if (!rc && arguments->bystander)
        rc = find_address(arguments->bystander, arguments->bystander_address, "--bystander-address",
                          it->bystander_address, err);
    rc = rc ? rc : verify_wish_find(arguments, it->address, &it->wish, err);
    rc = rc ? rc : expect(it, err);
    if (!rc)
        rc = it->stop_fd = open_stop(err);
    rc = rc < 0 ? rc : probe_peer(it, err);
    if (!rc && arguments->bystander)
        rc = probe_bystander(it, err);
    if (!rc && arguments->json)
        rc = output_json(to_json(it), arguments->json, err);
    else if (!rc)
        print(it);
    return rc;
}

int verb_verify(int argc, char **argv)
{
    struct verify_arguments arguments;
    struct err err = {""};
    verify_arguments_parse(argc, argv, &arguments);
    struct verification it = {
        .arguments = &arguments, .stop_fd = -1, .progress = isatty(STDERR_FILENO) ? stderr : NULL};
    int rc = verify(&it, &err);
    if (it.stop_fd >= 0)
        close(it.stop_fd);
    verify_wish_free(&it.wish);
    int code = output_end("verify", rc, &err);
    return code || judgement_good(&it.judgement) ? code : EXIT_FAILED;
}
