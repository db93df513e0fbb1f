/* Finding the compute time that makes a one-site run take as long as it was measured to. Internal to sim/engine. */
#ifndef LONGHAUL_CALIBRATION_H
#define LONGHAUL_CALIBRATION_H

#include "sim/engine/engine.h"
#include "sim/report/result.h"

struct calibration {
    enum flops_convention convention; /* how a measured MFU is read; set by the caller */
    struct calibration_result result;
    bool is_baseline; /* the measured configuration is all of the scenario's GPUs in one site: */
    bool folded;      /* then the last run is the baseline of the strategy it calibrated on */
    struct engine_outcome last;
};

/* Solves each for the kernel efficiency by running the measured configuration (calibrate.data replicas,
 * calibrate.global_batch, one site, calibrate.strategy) until its step is the measured one within 1e-4; all of them
 * side by side on `workers` processes. Without calibrate: training.kernel_efficiency as it stands. Returns 0; -EINVAL
 * where no compute time can give the measured step (its communication alone takes longer, or it would need more than
 * the GPU's peak); other negative errno as engine_run. */
int calibrate(const struct scenario *scenario, struct calibration *calibrations, size_t count, int workers,
              struct err *err);

#endif
