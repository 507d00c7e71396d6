// Whether two tensors are equal as a whole: the one comparison whose answer goes to the host.
#include <diopi/diopirt.h>

#include "core/workspace.h"
#include "elementwise.h"

namespace impl::portable {

diopiError_t diopiAll(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      const int64_t* dim);

namespace {

using namespace diopi::kernels;

struct Equality {
    template <class C>
    static DIOPI_HD bool apply(C input, C other) {
        return input == other;
    }
};

}  // namespace

diopiError_t diopiEqual(diopiContextHandle_t ctx, bool* out, diopiConstTensorHandle_t input,
                        diopiConstTensorHandle_t other) {
    return guarded([&] {
        require(out != nullptr, "the place for the answer is null");
        const TensorView left = required_view(input, "input");
        *out = left.same_sizes(required_view(other, "other"));
        if (!*out || left.numel == 0) return;
        diopiTensorHandle_t same = nullptr;
        diopiTensorHandle_t all = nullptr;
        allocated(ctx, &same, left.sizes, left.ndim, diopi_dtype_bool);
        const TensorView answer = allocated(ctx, &all, nullptr, 0, diopi_dtype_bool);
        passed_on(elementwise<Equality, Any, Compute::promote>(ctx, same, input, other));
        passed_on(impl::portable::diopiAll(ctx, all, same, nullptr));
        check(diopi::launch::copy_to_host(stream_of(ctx), out, answer.data, sizeof(bool)),
              "the answer could not be copied to the host");
    });
}

}  // namespace impl::portable
