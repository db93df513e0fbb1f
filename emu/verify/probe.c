/* The prober: one thread sends on an absolute schedule and receives in between, asleep otherwise. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "emu/verify/progress.h"
#include "emu/verify/session.h"
#include "emu/verify/statistics.h"
#include "emu/verify/verify.h"

#define CONFIDENCE 0.99
#define SILENCE_S 3.0  /* and the grace time: nobody answers */
#define STRAGGLE_S .05 /* for duplicates after the last answer */

struct prober {
    const struct probe_plan *plan;
    FILE *terminal; /* NULL: none */
    struct progress progress;
    struct measured *measured;
    struct session session;
    int64_t start_ns, interval_ns, end_ns; /* of the probes; end: when it waits no longer */
    size_t sent, answers;
    int64_t *rtt_ns; /* owned: of the answers, as they came */
    struct moments rtt, one_way[2];
    struct arrivals probes_back, answers_back; /* by the probe's number, by the answer's */
    struct batch *out, *in;                    /* owned */
};

static int64_t due_ns(const struct prober *prober)
{
    return prober->start_ns + (int64_t)prober->sent * prober->interval_ns;
}

/* Sends what is due by now, in one call. */
static void send_due(struct prober *prober)
{
    unsigned count = 0;
    int64_t now_ns = io_now_ns();
    for (; count < WIRE_BATCH && prober->sent < prober->plan->probes && due_ns(prober) <= now_ns; count++) {
        struct datagram probe = {.number = (uint32_t)prober->sent++};
        memcpy(probe.key, prober->session.key, sizeof probe.key);
        probe.sent_ns = io_now_ns();
        wire_pack(&probe, prober->out->parts[count].iov_base);
    }
    if (count)
        batch_send(prober->out, prober->session.udp, count, false);
    if (count && prober->sent == prober->plan->probes)
        prober->end_ns = io_now_ns() + io_ns(prober->plan->grace_s);
}

static void take_answer(struct prober *prober, const struct datagram *answer, int64_t now_ns)
{
    arrivals_add(&prober->answers_back, answer->nth_answer);
    if (answer->number >= prober->sent || !arrivals_add(&prober->probes_back, answer->number))
        return;
    int64_t rtt_ns = now_ns - answer->sent_ns;
    prober->rtt_ns[prober->answers++] = rtt_ns;
    moments_add(&prober->rtt, (double)rtt_ns);
    if (prober->session.same_clock) {
        moments_add(&prober->one_way[OUT], (double)(answer->received_ns - answer->sent_ns));
        moments_add(&prober->one_way[BACK], (double)(now_ns - answer->received_ns));
    }
    if (prober->answers == prober->plan->probes)
        prober->end_ns = now_ns + io_ns(STRAGGLE_S);
}

static void receive(struct prober *prober)
{
    int count;
    do {
        count = batch_receive(prober->in, prober->session.udp);
        int64_t now_ns = io_now_ns();
        for (int i = 0; i < count; i++) {
            struct datagram answer;
            if (wire_unpack(prober->in->parts[i].iov_base, prober->in->messages[i].msg_len, prober->session.key,
                            &answer) &&
                answer.answer)
                take_answer(prober, &answer, now_ns);
        }
    } while (count == WIRE_BATCH);
}

/* Sleeps until a probe is due, an answer is here, or it is over (1). */
static int wait_for_work(struct prober *prober, struct err *err)
{
    const struct probe_plan *plan = prober->plan;
    struct pollfd polled[] = {{.fd = prober->session.udp, .events = POLLIN},
                              {.fd = prober->session.control.fd, .events = POLLIN | POLLRDHUP},
                              {.fd = plan->stop_fd, .events = POLLIN}};
    int64_t now_ns = io_now_ns();
    int64_t left_ns = (prober->sent < plan->probes ? due_ns(prober) : prober->end_ns) - now_ns;
    left_ns = left_ns > 0 ? left_ns : 0;
    struct timespec timeout = {.tv_sec = left_ns / IO_NS_PER_S, .tv_nsec = left_ns % IO_NS_PER_S};
    if (ppoll(polled, 3, &timeout, NULL) < 0 && errno != EINTR)
        return err_set(err, errno, "poll: %s", strerror(errno));
    if (polled[2].revents)
        return session_lost(&prober->session, -EINTR, err);
    if (polled[1].revents)
        return session_lost(&prober->session, -ECONNRESET, err);
    if (!prober->answers && now_ns - prober->start_ns > io_ns(SILENCE_S + plan->grace_s))
        return 1;
    return prober->sent == plan->probes && io_now_ns() >= prober->end_ns;
}

static int run_probes(struct prober *prober, struct err *err)
{
    const struct probe_plan *plan = prober->plan;
    int over = 0;
    prctl(PR_SET_TIMERSLACK, 1UL); /* else 50 us late */
    prober->interval_ns = io_ns(plan->interval_s);
    prober->interval_ns = prober->interval_ns > 0 ? prober->interval_ns : 1;
    prober->start_ns = io_now_ns();
    progress_begin(&prober->progress, prober->terminal, "probing", plan->address,
                   prober->start_ns + (int64_t)plan->probes * prober->interval_ns + io_ns(plan->grace_s));
    for (unsigned i = 0; i < WIRE_BATCH; i++)
        prober->out->parts[i].iov_len = plan->payload_bytes;
    while (!over) {
        send_due(prober);
        over = wait_for_work(prober, err);
        receive(prober);
        progress_show(&prober->progress);
    }
    progress_clear(&prober->progress);
    if (over < 0)
        return over;
    if (!prober->answers)
        return err_set(err, ETIMEDOUT,
                       "no answer to %zu probes: does anything between here and %s drop UDP to port %u?", prober->sent,
                       plan->address, wire_port(&prober->session.peer));
    return 0;
}

static void judge_direction(struct direction_loss *loss, uint64_t sent, uint64_t missing, uint64_t runs)
{
    loss->sent = sent;
    loss->lost = missing;
    loss->runs = runs;
    binomial_interval((double)missing, (double)sent, CONFIDENCE, &loss->low, &loss->high);
}

/* What got through outwards, the responder knows; of its answers, we do. */
static int ask_report(struct prober *prober, struct err *err)
{
    char rest[SESSION_LINE_MAX];
    struct direction_loss *out = &prober->measured->loss[OUT], *back = &prober->measured->loss[BACK];
    uint64_t missing, runs;
    int rc = io_say(prober->session.control.fd, "report %zu\n", prober->sent);
    if (rc)
        return session_lost(&prober->session, rc, err);
    rc = session_answer(&prober->session, "report ", rest, err);
    if (rc)
        return rc;
    if (sscanf(rest, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &missing, &runs, &out->reordered,
               &out->duplicated) != 4 ||
        missing > prober->sent)
        return err_set(err, EPROTO, "the responder at %s says 'report %s'", prober->plan->address, rest);
    judge_direction(out, prober->sent, missing, runs);
    arrivals_missing(&prober->answers_back, (uint32_t)(prober->sent - missing), &missing, &runs);
    judge_direction(back, prober->sent - out->lost, missing, runs);
    back->reordered = prober->answers_back.reordered;
    back->duplicated = prober->answers_back.duplicated;
    return 0;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double quantile_s(const struct prober *prober, double q)
{
    return quantile_of_sorted(prober->rtt_ns, prober->answers, q) / IO_NS_PER_S;
}

static void summarise(struct prober *prober)
{
    struct measured *measured = prober->measured;
    qsort(prober->rtt_ns, prober->answers, sizeof *prober->rtt_ns, compare);
    measured->answers = prober->answers;
    measured->rtt_mean_s = prober->rtt.mean / IO_NS_PER_S;
    measured->rtt_sd_s = moments_sd(&prober->rtt) / IO_NS_PER_S;
    measured->rtt_min_s = quantile_s(prober, 0);
    measured->rtt_p50_s = quantile_s(prober, 0.5);
    measured->rtt_p90_s = quantile_s(prober, 0.9);
    measured->rtt_p99_s = quantile_s(prober, 0.99);
    measured->rtt_max_s = quantile_s(prober, 1);
    measured->address_bytes = prober->session.peer.ss_family == AF_INET6 ? 16 : 4;
    measured->one_way_known = prober->session.same_clock;
    for (int i = OUT; i <= BACK; i++) {
        measured->one_way_mean_s[i] = prober->one_way[i].mean / IO_NS_PER_S;
        measured->one_way_sd_s[i] = moments_sd(&prober->one_way[i]) / IO_NS_PER_S;
    }
}

static int allocate(struct prober *prober, struct err *err)
{
    const struct probe_plan *plan = prober->plan;
    prober->rtt_ns = calloc(plan->probes, sizeof *prober->rtt_ns);
    prober->out = batch_new(plan->payload_bytes);
    prober->in = batch_new(plan->payload_bytes);
    int rc = prober->rtt_ns && prober->out && prober->in ? 0 : -ENOMEM;
    rc = rc ? rc : arrivals_init(&prober->probes_back, (uint32_t)plan->probes);
    rc = rc ? rc : arrivals_init(&prober->answers_back, (uint32_t)plan->probes);
    return rc ? err_set(err, ENOMEM, "out of memory for %zu probes", plan->probes) : 0;
}

int probe_run(const struct probe_plan *plan, FILE *terminal, struct measured *measured, struct err *err)
{
    struct prober prober = {.plan = plan, .terminal = terminal, .measured = measured};
    *measured = (struct measured){0};
    int rc = session_open(plan, &prober.session, err);
    rc = rc ? rc : allocate(&prober, err);
    rc = rc ? rc : run_probes(&prober, err);
    rc = rc ? rc : ask_report(&prober, err);
    if (!rc)
        summarise(&prober);
    if (!rc && plan->goodput_s > 0)
        rc = session_goodput(&prober.session, terminal, &measured->goodput, err);
    session_close(&prober.session);
    arrivals_free(&prober.probes_back);
    arrivals_free(&prober.answers_back);
    batch_free(prober.out);
    batch_free(prober.in);
    free(prober.rtt_ns);
    return rc;
}
