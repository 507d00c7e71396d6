// What products and factorizations by OpenBLAS share.
#ifndef DIOPI_DROPLET_OPENBLAS_H_
#define DIOPI_DROPLET_OPENBLAS_H_

#include <cblas.h>

#include <limits>

#include "core/error.h"

namespace diopi::launch {

// The chip's threads share the work already. Besides, OpenBLAS's own wait by spinning: on a busy machine two of them
// take ten times as long for the small matrices of the training models as one does.
inline void use_one_thread() {
    static const bool set = [] {
        scipy_openblas_set_num_threads(1);
        return true;
    }();
    static_cast<void>(set);
}

inline blasint extent(int64_t value) {
    kernels::require(value >= 0 && value <= std::numeric_limits<blasint>::max(),
                     "a matrix of extent %lld is beyond what OpenBLAS takes", value);
    return static_cast<blasint>(value);
}

}  // namespace diopi::launch

#endif  // DIOPI_DROPLET_OPENBLAS_H_
