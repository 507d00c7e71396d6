// For chips whose launcher has no solver, and for matrices that it does not take: plain loops, each matrix, or each of
// its right sides, a task of its own.
#include "solver.h"

#include "math/math.h"
#include "space/runs.h"

namespace diopi::kernels {
namespace {

// Applies I - tau v v^T to x, of `length` elements; v starts with a one that is not stored.
DIOPI_HD void reflect(const double* v, double tau, int64_t length, double* x) {
    double sum = x[0];
    for (int64_t i = 1; i < length; ++i) sum += v[i] * x[i];
    x[0] -= tau * sum;
    for (int64_t i = 1; i < length; ++i) x[i] -= tau * sum * v[i];
}

// Makes x into a reflection that turns it into a multiple of a unit vector; gives its tau.
DIOPI_HD double make_reflection(double* x, int64_t length) {
    double largest = 0;  // squares of what is divided by it do not overflow
    for (int64_t i = 1; i < length; ++i) largest = math::abs(x[i]) <= largest ? largest : math::abs(x[i]);
    if (largest == 0) return 0;  // a unit vector's multiple already
    largest = math::abs(x[0]) <= largest ? largest : math::abs(x[0]);
    double squares = 0;
    for (int64_t i = 0; i < length; ++i) squares += (x[i] / largest) * (x[i] / largest);
    const double norm = largest * math::sqrt(squares);
    const double target = x[0] >= 0 ? -norm : norm;
    const double tau = (target - x[0]) / target;
    for (int64_t i = 1; i < length; ++i) x[i] /= x[0] - target;
    x[0] = target;
    return tau;
}

}  // namespace

void potrf(diopiStreamHandle_t stream, int64_t n, double* a, int32_t* info, int64_t batch, const Workspace& workspace) {
    if constexpr (launch::kHasSolver) {
        if (launch::solves(n, batch)) return launch::potrf(stream, n, a, info, batch, workspace);
    }
    for_each_index(
        stream, batch, DIOPI_LAMBDA(int64_t matrix) {
            double* l = a + matrix * n * n;
            info[matrix] = 0;
            for (int64_t j = 0; j < n && info[matrix] == 0; ++j) {
                for (int64_t i = j; i < n; ++i) {
                    for (int64_t k = 0; k < j; ++k) l[j * n + i] -= l[k * n + i] * l[k * n + j];
                    if (i == j && !(l[j * n + j] > 0)) {
                        info[matrix] = static_cast<int32_t>(j + 1);
                        break;
                    }
                    l[j * n + i] = i == j ? math::sqrt(l[j * n + j]) : l[j * n + i] / l[j * n + j];
                }
            }
        });
}

void trsm(diopiStreamHandle_t stream, const Triangle& triangle, int64_t m, int64_t n, const double* a, double* b,
          int64_t batch, const Workspace& workspace) {
    if constexpr (launch::kHasSolver) {
        if (launch::solves(triangle.left ? m : n, batch))
            return launch::trsm(stream, triangle, m, n, a, b, batch, workspace);
    }
    const int64_t order = triangle.left ? m : n, sides = triangle.left ? n : m;
    const int64_t step = triangle.left ? 1 : m, next = triangle.left ? m : 1;
    const bool flipped = triangle.is_transposed == triangle.left;  // x op(a) = b is op(a)^T x^T = b^T
    const bool lower = triangle.upper == flipped, unit = triangle.unit;
    const int64_t down = flipped ? order : 1, across = flipped ? 1 : order;
    for_each_index(
        stream, batch * sides, DIOPI_LAMBDA(int64_t i) {
            const int64_t matrix = i / sides;
            const double* t = a + matrix * order * order;
            double* x = b + matrix * m * n + (i - matrix * sides) * next;
            for (int64_t done = 0; done < order; ++done) {
                const int64_t r = lower ? done : order - 1 - done;
                const int64_t end = lower ? r : order;
                double sum = x[r * step];
                for (int64_t k = lower ? 0 : r + 1; k < end; ++k) sum -= t[r * down + k * across] * x[k * step];
                x[r * step] = unit ? sum : sum / t[r * (down + across)];
            }
        });
}

void geqrf(diopiStreamHandle_t stream, int64_t m, int64_t n, double* a, double* tau, int64_t batch,
           const Workspace& workspace) {
    if constexpr (launch::kHasSolver) {
        if (launch::solves(m, batch)) return launch::geqrf(stream, m, n, a, tau, batch, workspace);
    }
    const int64_t count = m < n ? m : n;
    for_each_index(
        stream, batch, DIOPI_LAMBDA(int64_t matrix) {
            for (int64_t r = 0; r < count; ++r) {
                double* v = a + (matrix * n + r) * m + r;
                tau[matrix * count + r] = make_reflection(v, m - r);
                for (int64_t c = 1; c < n - r; ++c) reflect(v, tau[matrix * count + r], m - r, v + c * m);
            }
        });
}

void orgqr(diopiStreamHandle_t stream, int64_t m, int64_t n, int64_t k, double* a, const double* tau, int64_t batch,
           const Workspace& workspace) {
    if constexpr (launch::kHasSolver) {
        if (launch::solves(m, batch)) return launch::orgqr(stream, m, n, k, a, tau, batch, workspace);
    }
    for_each_index(
        stream, batch, DIOPI_LAMBDA(int64_t matrix) {
            double* q = a + matrix * n * m;
            for (int64_t i = k * m; i < n * m; ++i) q[i] = i % m == i / m ? 1 : 0;
            for (int64_t r = k - 1; r >= 0; --r) {
                double* v = q + r * m + r;
                for (int64_t c = 1; c < n - r; ++c) reflect(v, tau[matrix * k + r], m - r, v + c * m);
                for (int64_t i = 0; i < r; ++i) q[r * m + i] = 0;
                for (int64_t i = 1; i < m - r; ++i) v[i] *= -tau[matrix * k + r];
                v[0] = 1 - tau[matrix * k + r];
            }
        });
}

}  // namespace diopi::kernels
