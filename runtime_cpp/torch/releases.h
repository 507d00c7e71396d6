// Where the supported releases of torch differ in C++: what some lack, under one name for all. Operators are the generator's
// (schemas/aten, drift).
#pragma once

#include <torch/headeronly/version.h>

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 14
#define DIPU_OVERRIDE_SINCE_2_14 override
#else
#define DIPU_OVERRIDE_SINCE_2_14
#endif

// torch.accelerator.Graph.
#if __has_include(<ATen/core/GraphImplInterface.h>)
#define DIPU_HAS_GRAPHS
#endif

// torch records the calls of every backend of torch.distributed in its flight recorder.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 15
#define DIPU_TORCH_RECORDS_CALLS
#endif

// torch registers the profilers of PrivateUse1 itself.
#if __has_include(<torch/csrc/profiler/standalone/privateuse1_profiler.h>)
#define DIPU_HAS_PROFILER_REGISTRY
#endif

// Up to torch 2.12 the set_output functions also take the names of named tensors, which have their header only there.
#if __has_include(<ATen/core/NamedTensor.h>)
#define DIPU_NAMES_PARAM , at::DimnameList names
#define DIPU_NAMES_ARG , names
#else
#define DIPU_NAMES_PARAM
#define DIPU_NAMES_ARG
#endif

namespace dipu {

// The counts of what is in use of the host's memory, which not every release has: fn(name, count).
template <class Stats, class Fn>
void for_each_in_use(const Stats& stats, const Fn& fn) {
    if constexpr (requires { stats.active_bytes; }) {
        fn("active_bytes", stats.active_bytes);
        fn("active_requests", stats.active_requests);
        fn("allocations", stats.allocations);
    }
}

// The name of a coalesced reduce_scatter, of which releases before 2.13 have none.
template <class Types>
constexpr Types coalesced_scatter() {
    if constexpr (requires { Types::REDUCE_SCATTER_TENSOR_COALESCED; }) {
        return Types::REDUCE_SCATTER_TENSOR_COALESCED;
    } else {
        return Types::COALESCED;
    }
}

}  // namespace dipu
