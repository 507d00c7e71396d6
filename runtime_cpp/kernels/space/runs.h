// for_runs: work on rows, cut so that a CPU gets whole rows to vectorize and a GPU one element per thread.
#pragma once

#include <cstdint>

#include "core/error.h"
#include "core/host_device.h"
#include "core/launcher.h"
#include "divider.h"
#include "index.h"

namespace diopi::kernels {

#if defined(__CUDACC__) || defined(DIOPI_LAUNCHER_HAS_TEAMS)
constexpr int64_t kRunLength = 1;
#else
constexpr int64_t kRunLength = int64_t{1} << 14;  // some microseconds
#endif

// Calls f(row, begin, end) on the device until the elements [0, length) of each of `rows` rows are covered.
template <class F>
void for_runs(diopiStreamHandle_t stream, int64_t rows, int64_t length, F f) {
    if (rows <= 0 || length <= 0) return;
    const int64_t pieces = (length + kRunLength - 1) / kRunLength;
    const Divider divider(pieces);
    check(launch::parallel_for(
              stream, rows * pieces,
              DIOPI_LAMBDA(int64_t i) {
                  int64_t row = i;
                  const int64_t begin = divider.split(row) * kRunLength, end = begin + kRunLength;
                  f(row, begin, kRunLength == 1 || end < length ? end : length);
              }),
          "a kernel could not be launched");
}

// The fastest dimension apart from the others.
template <int N>
struct Runs {
    Space<N> outer;
    int64_t length;
    int64_t stride[N];
};

template <int N>
Runs<N> runs_of(const Space<N>& space) {
    Runs<N> runs{};
    runs.outer = space;
    runs.length = space.inner_size();
    for (int n = 0; n < N; ++n) runs.stride[n] = space.inner_stride(n);
    if (space.ndim > 0) {
        --runs.outer.ndim;
        runs.outer.numel = runs.length == 0 ? 0 : space.numel / runs.length;
    }
    return runs;
}

// parallel_for whose failure is an exception.
template <class F>
void for_each_index(diopiStreamHandle_t stream, int64_t n, F f) {
    if (n > 0) check(launch::parallel_for(stream, n, f), "a kernel could not be launched");
}

}  // namespace diopi::kernels
