/* longhaul-emu: makes real traffic of this machine feel a long-haul link, and takes it back unharmed. */
#include "configs/verbs.h"
#include "emu/verbs/verbs.h"

static const struct verb list[] = {
    {"plan", "show what apply would do, also as tc commands; changes nothing", verb_plan},
    {"apply", "shape the traffic to the other sites; recorded, checked, taken back whole where it fails", verb_apply},
    {"status", "show what is applied, whether the kernel has it so, and its counters", verb_status},
    {"verify", "measure RTT, jitter, loss and goodput, requested beside measured", verb_verify},
    {"run", "shape, verify, run the scenario's strategies by mpirun, and clear", verb_run},
    {"clear", "put back what stood before", verb_clear},
    {"respond", "answer the probes of a verify (it starts this by itself)", verb_respond},
};

static const struct verbs verbs = {
    .program = "longhaul-emu",
    .purpose = "makes real traffic of this machine feel a long-haul link",
    .example =
        "Example: 21.3 ms round trip to the hosts of 10.2.0.0/16, for an hour, when the same runs at their end:\n\n"
        "  longhaul-emu plan   --dev eth0 --to 10.2.0.0/16 --delay 10.65ms\n"
        "  longhaul-emu apply  --dev eth0 --to 10.2.0.0/16 --delay 10.65ms --for 1h\n"
        "  longhaul-emu status\n"
        "  longhaul-emu clear\n",
    .list = list,
    .count = sizeof list / sizeof *list,
};

int main(int argc, char **argv)
{
    return verbs_main(&verbs, argc, argv);
}
