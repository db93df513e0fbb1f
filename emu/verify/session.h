/* The prober's side of a control connection. */
#ifndef LONGHAUL_VERIFY_SESSION_H
#define LONGHAUL_VERIFY_SESSION_H

#include "emu/verify/io.h"
#include "emu/verify/wire.h"

enum { SESSION_LINE_MAX = 256 };

struct session {
    const struct probe_plan *plan;
    struct io_line control;
    int udp; /* connected to the responder's UDP port */
    struct sockaddr_storage peer;
    socklen_t peer_length;
    uint8_t key[WIRE_KEY_BYTES];
    bool same_clock;
};

/* Connects, shows the key, opens the UDP socket. Close it also where this failed. */
int session_open(const struct probe_plan *plan, struct session *session, struct err *err);
void session_close(struct session *session);

/* One more connection to the responder. The descriptor, or a negative errno. */
int session_connect(struct session *session, uint32_t buffer_bytes, struct err *err);
/* Reads one line, which starts with `answer`; rest: what follows it. */
int session_answer(struct session *session, const char *answer, char rest[SESSION_LINE_MAX], struct err *err);
/* Says why talking to the responder ended with rc; returns it. */
int session_lost(const struct session *session, int rc, struct err *err);

/* The TCP measurement of the plan. terminal may be NULL. */
int session_goodput(struct session *session, FILE *terminal, struct goodput *goodput, struct err *err);

#endif
