/* The tables of the scenario file: every key that exists, its unit, range and default. */
#ifndef LONGHAUL_KEYS_H
#define LONGHAUL_KEYS_H

#include "configs/table.h"

enum {
    SITES_MAX = 64,
    WAN_MAX = 256,
    STRATEGIES_MAX = 64,
    REFERENCES_MAX = 256,
    GPUS_MAX = 10000000,
    NAME_MAX_LENGTH = 64,
    EMU_PREFIXES_MAX = 4096, /* of one site */
    LAB_HOSTS_MAX = 64       /* of one site */
};

#define LAB_DIVIDE_MAX 1e15 /* brings the widest link (a million waves of 1 Eb/s) to 1 Gb/s */

extern const struct table table_scenario, table_site, table_gpu, table_flops, table_fabric, table_wan, table_transport,
    table_model, table_training, table_calibrate, table_strategy, table_overlap, table_reference, table_emu,
    table_emu_site, table_lab;

/* All of them in the order of a scenario file, ended by NULL. */
extern const struct table *const tables_all[];

/* By enum dtype, ended by NULL. */
extern const char *const dtype_names[];

/* By enum jitter_shape, ended by NULL. */
extern const char *const jitter_shape_names[];

/* Metrics of a reference: keys of table_reference. Ended by NULL. */
extern const char *const reference_metrics[];

#endif
