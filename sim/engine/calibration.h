/* Finding the compute time that makes a one-site run take as long as it was measured to. Internal to sim/engine. */
#ifndef LONGHAUL_CALIBRATION_H
#define LONGHAUL_CALIBRATION_H

#include "sim/report/result.h"

/* Solves for the kernel efficiency by running the measured configuration (calibrate.data replicas, calibrate.global_batch, one site,
 * calibrate.strategy) until its step is the measured one within 1e-9. convention is how a measured MFU is read. *added_s: what
 * communication adds to the step with free communication, in a guess and out as found (0 at first).
 * Without calibrate: training.kernel_efficiency as it stands. Returns 0; -EINVAL where no compute time can give the measured step
 * (its communication alone takes longer, or it would need more than the GPU's peak); other negative errno as engine_run. */
int calibrate(const struct scenario *scenario, enum flops_convention convention, double *added_s,
              struct calibration_result *result, struct err *err);

#endif
