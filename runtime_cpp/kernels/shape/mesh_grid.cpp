// The coordinates of the points of a grid.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/view.h"

namespace impl::portable {

using namespace diopi::kernels;

diopiError_t diopiMeshGrid(Context ctx, Tensor* outs, ConstTensor* inputs, int64_t inputsNum) {
    return guarded([&] {
        for (int64_t k = 0; k < inputsNum; ++k) {
            const TensorView out = required_view(outs[k], "outs");
            TensorView line = at_least_1d(required_view(inputs[k], "inputs"));
            require(out.ndim == inputsNum && line.ndim == 1, "a grid of %lld sequences has as many dimensions",
                    inputsNum);
            require(out.sizes[k] == line.sizes[0], "dimension %lld of a grid has the size of its sequence", k);
            while (line.ndim < inputsNum - k) line = with_dim(line, line.ndim, 1, 0);
            copy_elements(ctx, out, line);
        }
    });
}

}  // namespace impl::portable
