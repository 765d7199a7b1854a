/* The practical limit of a kernel of the published system: polynomial exponentials, no safety, data in L1 cache. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline double fast_exp(double x)
{
    const double shifted = x * 1.4426950408889634 + 6755399441055744.0;
    const double r = x - (shifted - 6755399441055744.0) * 0.6931471805599453;
    const double r2 = r * r, r4 = r2 * r2;
    const double low = ((1.0 + r) + r2 * (1.0 / 2 + r * (1.0 / 6))) + r4 * ((1.0 / 24 + r * (1.0 / 120))
        + r2 * (1.0 / 720 + r * (1.0 / 5040)));
    const double high = (1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800));
    double power;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return (low + r4 * r4 * high) * power;
}

static inline double fast_log1p(double x)
{
    const int far = x > 0.41421356237309503;
    const double s = (far ? x - 1.0 : x) / (far ? x + 3.0 : x + 2.0), z = s * s, z2 = z * z, z4 = z2 * z2;
    const double low = (1.0 / 3 + z * (1.0 / 5)) + z2 * (1.0 / 7 + z * (1.0 / 9));
    const double high = (1.0 / 11 + z * (1.0 / 13)) + z2 * (1.0 / 15 + z * (1.0 / 17));
    return (far ? 0.6931471805599453 : 0.0) + 2.0 * s + 2.0 * s * z * (low + z4 * high);
}

/* ``repeat`` passes over ``count`` states: velocities, loss, attention. */
void limit(size_t repeat, size_t count, const double *restrict v, const double *restrict q, double *restrict d_v,
    double *restrict d_q, double *restrict loss, double *restrict attention, double M, double b, double ratio,
    double log_others, double eta_OV, double eta_QK)
{
    for (size_t k = 0; k < repeat; k++) {
        for (size_t i = 0; i < count; i++) {
            const double a = 1.0 / (1.0 + ratio * fast_exp(-q[i]));
            const double x = log_others - a * v[i];
            const double decay = fast_exp(x < 0.0 ? x : -x);
            const double share = a * (x < 0.0 ? decay : 1.0) / (1.0 + decay) / (b * (M - 1.0));
            d_v[i] = eta_OV * share;
            d_q[i] = eta_QK * (M - 1.0) / (M * b) * share * (1.0 - a) * v[i];
            loss[i] = (x < 0.0 ? 0.0 : x) + fast_log1p(decay);
            attention[i] = a;
        }
        __asm__ volatile("" : : : "memory");
    }
}
