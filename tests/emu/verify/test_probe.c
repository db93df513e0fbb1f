/* Prober and responder over loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/verify/verify.h"
#include "emu/verify/wire.h"
#include "tests/report/runner.h"

/* A responder in a process of its own. */
struct other_end {
    pid_t process;
    uint16_t port;
    char key[VERIFY_KEY_DIGITS + 1];
    int hold; /* closing it ends it */
};

static struct other_end start(double idle_s)
{
    struct other_end end = {0};
    int announce[2], hold[2];
    unsigned port = 0;
    ck_assert(!pipe(announce) && !pipe(hold));
    end.process = fork();
    if (end.process == 0) {
        close(hold[1]);
        struct respond_options options = {.address = "127.0.0.1", .idle_s = idle_s, .stop_fd = hold[0]};
        _exit(respond_run(&options, fdopen(announce[1], "w"), NULL) ? 1 : 0);
    }
    close(announce[1]);
    close(hold[0]);
    FILE *said = fdopen(announce[0], "r");
    ck_assert_int_eq(fscanf(said, "port %u key %32s", &port, end.key), 2);
    fclose(said);
    end.port = (uint16_t)port;
    end.hold = hold[1];
    return end;
}

/* Lets it end as it does, and says with which status. */
static int finish(struct other_end *end)
{
    int status;
    close(end->hold);
    ck_assert(waitpid(end->process, &status, 0) == end->process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static struct probe_plan plan_for(const struct other_end *end)
{
    return (struct probe_plan){.key = end->key,
                               .address = "127.0.0.1",
                               .port = end->port,
                               .probes = 500,
                               .interval_s = 1e-3,
                               .payload_bytes = 64,
                               .grace_s = 0.2,
                               .stop_fd = -1};
}

START_TEST(every_probe_comes_back)
{
    struct other_end end = start(20);
    struct probe_plan plan = plan_for(&end);
    struct measured it;
    struct err err = {""};
    for (int turn = 0; turn < 2; turn++) { /* one prober after the other */
        ck_assert_msg(!probe_run(&plan, NULL, &it, &err), "%s", err.text);
        ck_assert_uint_eq(it.answers, 500);
        ck_assert(it.loss[OUT].lost == 0 && it.loss[BACK].lost == 0 && it.loss[OUT].sent == 500);
        ck_assert(it.loss[OUT].reordered == 0 && it.loss[BACK].duplicated == 0);
        ck_assert(it.loss[OUT].low == 0 && it.loss[OUT].high > 0.005 && it.loss[OUT].high < 0.02);
        ck_assert(it.rtt_min_s > 0 && it.rtt_min_s <= it.rtt_p50_s && it.rtt_p50_s <= it.rtt_p99_s);
        ck_assert(it.rtt_p99_s <= it.rtt_max_s && it.rtt_p50_s < 0.01);
        ck_assert(it.one_way_known);
        double sum = it.one_way_mean_s[OUT] + it.one_way_mean_s[BACK];
        ck_assert(sum > 0.999 * it.rtt_mean_s && sum < 1.001 * it.rtt_mean_s);
        plan.payload_bytes = 1400;
    }
    ck_assert_int_eq(finish(&end), 0);
}
END_TEST

START_TEST(faster_than_the_machine_can)
{
    struct other_end end = start(20);
    struct probe_plan plan = plan_for(&end);
    struct measured it;
    struct err err = {""};
    plan.probes = 20000;
    plan.interval_s = 1e-9;
    plan.grace_s = 1;
    ck_assert_msg(!probe_run(&plan, NULL, &it, &err), "%s", err.text);
    ck_assert_uint_eq(it.loss[OUT].sent, 20000);
    ck_assert_uint_eq(it.loss[BACK].sent, 20000 - it.loss[OUT].lost);
    ck_assert_uint_eq(it.answers, 20000 - it.loss[OUT].lost - it.loss[BACK].lost);
    finish(&end);
}
END_TEST

static void measure_goodput(enum direction direction)
{
    struct other_end end = start(20);
    struct probe_plan plan = plan_for(&end);
    struct measured it;
    struct err err = {""};
    plan.probes = 10;
    plan.goodput_s = 0.3;
    plan.warmup_s = 0.1;
    plan.buffer_bytes = 4 << 20;
    plan.goodput_direction = direction;
    ck_assert_msg(!probe_run(&plan, NULL, &it, &err), "%s", err.text);
    ck_assert(it.goodput.known && it.goodput.bit_per_s > 1e7);
    ck_assert(it.goodput.time_s >= 0.3 && it.goodput.time_s < 0.6);
    ck_assert(it.goodput.mss_bytes > 500 && it.goodput.mtu_bytes > it.goodput.mss_bytes);
    ck_assert(it.goodput.sndbuf_bytes > 0 && it.goodput.rcvbuf_bytes > 0 && *it.goodput.congestion);
    finish(&end);
}

START_TEST(goodput_both_directions)
{
    measure_goodput(OUT);
    measure_goodput(BACK);
}
END_TEST

START_TEST(another_key_is_shown_the_door)
{
    struct other_end end = start(20);
    struct probe_plan plan = plan_for(&end);
    struct measured it;
    struct err err = {""};
    plan.key = "00112233445566778899aabbccddeeff";
    ck_assert_int_eq(probe_run(&plan, NULL, &it, &err), -EACCES);
    ck_assert(strstr(err.text, "key") && !strchr(err.text, '\n'));
    plan.key = "short";
    ck_assert_int_eq(probe_run(&plan, NULL, &it, &err), -EINVAL);
    plan.key = end.key; /* it serves the next one all the same */
    ck_assert_int_eq(probe_run(&plan, NULL, &it, &err), 0);
    finish(&end);
}
END_TEST

/* A connected UDP socket that waits half a second at most. */
static int stranger(uint16_t port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct timeval patience = {.tv_usec = 500000};
    inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert(fd >= 0 && !connect(fd, (struct sockaddr *)&name, sizeof name));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

static bool answered(int fd, const char *key_text, bool is_answer, size_t size)
{
    uint8_t bytes[VERIFY_PAYLOAD_MIN], back[VERIFY_PAYLOAD_MIN];
    struct datagram probe = {.number = 3, .answer = is_answer};
    ck_assert_int_eq(wire_key_parse(key_text, probe.key, NULL), 0);
    wire_pack(&probe, bytes);
    send(fd, bytes, size, 0);
    return recv(fd, back, sizeof back, 0) > 0;
}

/* Plays a prober by hand, to have its UDP port and send what a prober would not. */
START_TEST(strangers_get_no_answer)
{
    struct other_end end = start(20);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(end.port)};
    char line[128];
    unsigned port;
    inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
    int before = stranger(end.port);
    ck_assert(!answered(before, end.key, false, VERIFY_PAYLOAD_MIN)); /* no prober: no UDP socket at all */
    int control = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(!connect(control, (struct sockaddr *)&name, sizeof name));
    dprintf(control, "probe %s 10\n", end.key);
    ssize_t length = read(control, line, sizeof line - 1);
    ck_assert(length > 0);
    line[length] = '\0';
    ck_assert_int_eq(sscanf(line, "ready %u ", &port), 1);
    int udp = stranger((uint16_t)port);
    ck_assert(!answered(udp, "00112233445566778899aabbccddeeff", false, VERIFY_PAYLOAD_MIN));
    ck_assert(!answered(udp, end.key, true, VERIFY_PAYLOAD_MIN)); /* an answer is not answered: no loop of two */
    ck_assert(!answered(udp, end.key, false, VERIFY_PAYLOAD_MIN - 1));
    ck_assert(answered(udp, end.key, false, VERIFY_PAYLOAD_MIN));
    ck_assert(!answered(udp, end.key, false, VERIFY_PAYLOAD_MIN)); /* each once */
    close(before);
    close(udp);
    close(control);
    finish(&end);
}
END_TEST

START_TEST(nobody_there)
{
    struct other_end end = start(20);
    struct probe_plan plan = plan_for(&end);
    struct measured it;
    struct err err = {""};
    finish(&end);
    ck_assert_int_eq(probe_run(&plan, NULL, &it, &err), -ECONNREFUSED);
    ck_assert(strstr(err.text, "no responder at 127.0.0.1"));
}
END_TEST

/* One that takes the key and answers no probe: as behind a firewall that drops UDP. */
START_TEST(udp_filtered)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t length = sizeof name;
    inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
    int listener = socket(AF_INET, SOCK_STREAM, 0), silent = socket(AF_INET, SOCK_DGRAM, 0);
    ck_assert(!bind(listener, (struct sockaddr *)&name, sizeof name) && !listen(listener, 1));
    ck_assert(!bind(silent, (struct sockaddr *)&name, sizeof name));
    ck_assert(!getsockname(silent, (struct sockaddr *)&name, &length));
    unsigned udp_port = ntohs(name.sin_port);
    ck_assert(!getsockname(listener, (struct sockaddr *)&name, &length));
    pid_t child = fork();
    if (child == 0) {
        char line[128];
        int fd = accept(listener, NULL, NULL);
        if (read(fd, line, sizeof line) > 0)
            dprintf(fd, "ready %u clock\n", udp_port);
        while (read(fd, line, sizeof line) > 0)
            ;
        _exit(0);
    }
    struct probe_plan plan = {.key = "00112233445566778899aabbccddeeff",
                              .address = "127.0.0.1",
                              .port = ntohs(name.sin_port),
                              .probes = 20,
                              .interval_s = 1e-3,
                              .payload_bytes = 64,
                              .grace_s = 0.1,
                              .stop_fd = -1};
    struct measured it;
    struct err err = {""};
    ck_assert_int_eq(probe_run(&plan, NULL, &it, &err), -ETIMEDOUT);
    ck_assert(strstr(err.text, "no answer to 20 probes"));
    waitpid(child, NULL, 0);
}
END_TEST

/* After a third of a second in a child, the descriptor or the process goes. */
static pid_t later(int close_fd, pid_t victim)
{
    pid_t child = fork();
    if (child == 0) {
        usleep(300000);
        if (victim)
            kill(victim, SIGKILL);
        else
            (void)!write(close_fd, "x", 1);
        _exit(0);
    }
    return child;
}

START_TEST(responder_dies_in_the_middle)
{
    struct other_end end = start(20);
    struct probe_plan plan = plan_for(&end);
    struct measured it;
    struct err err = {""};
    plan.probes = 100000;
    pid_t child = later(-1, end.process);
    ck_assert_int_eq(probe_run(&plan, NULL, &it, &err), -ECONNRESET);
    ck_assert(strstr(err.text, "went away in the middle"));
    waitpid(child, NULL, 0);
    waitpid(end.process, NULL, 0);
}
END_TEST

START_TEST(stopped_while_probing_and_while_sending)
{
    struct other_end end = start(20);
    struct probe_plan plan = plan_for(&end);
    struct measured it;
    for (int turn = 0; turn < 3; turn++) {
        struct err err = {""};
        int stop[2];
        ck_assert(!pipe(stop));
        plan.stop_fd = stop[0];
        plan.probes = turn ? 10 : 100000;
        plan.goodput_s = turn ? 60 : 0;
        plan.goodput_direction = turn == 2 ? BACK : OUT;
        pid_t child = later(stop[1], 0);
        ck_assert_int_eq(probe_run(&plan, NULL, &it, &err), -EINTR);
        ck_assert_str_eq(err.text, "interrupted");
        waitpid(child, NULL, 0);
        close(stop[0]);
        close(stop[1]);
    }
    ck_assert_int_eq(finish(&end), 0);
}
END_TEST

START_TEST(ends_when_idle)
{
    struct other_end end = start(0.2);
    int status;
    ck_assert(waitpid(end.process, &status, 0) == end.process); /* with its hold still open */
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("probe");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, every_probe_comes_back);
    tcase_add_test(cases, faster_than_the_machine_can);
    tcase_add_test(cases, goodput_both_directions);
    tcase_add_test(cases, another_key_is_shown_the_door);
    tcase_add_test(cases, strangers_get_no_answer);
    tcase_add_test(cases, nobody_there);
    tcase_add_test(cases, udp_filtered);
    tcase_add_test(cases, responder_dies_in_the_middle);
    tcase_add_test(cases, stopped_while_probing_and_while_sending);
    tcase_add_test(cases, ends_when_idle);
    return run_cases("emu-probe", cases);
}
