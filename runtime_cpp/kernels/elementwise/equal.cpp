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

#if !defined(__CUDACC__)

// Looks no further than the first piece with a difference.
template <class T>
struct EqualTask {
    const T* left;
    const T* right;
    int64_t count;
    bool* out;

    void operator()(int64_t) const {
        using C = ComputeType<T>;
        constexpr int64_t piece = 1024;
        int different = 0;
        for (int64_t first = 0; first < count && different == 0; first += piece) {
            const int64_t end = count - first < piece ? count : first + piece;
            DIOPI_VECTOR_LOOP
            for (int64_t i = first; i < end; ++i) different |= !(cast<C>(left[i]) == cast<C>(right[i]));
        }
        *out = different == 0;
    }
};

bool dense_alike(const TensorView& left, const TensorView& right) {
    return left.dtype == right.dtype && left.contiguous() && right.contiguous();
}

void compare_dense(Context ctx, const TensorView& left, const TensorView& right, bool* out) {
    dispatch<Any>(left.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        for_each(ctx, 1, EqualTask<T>{left.as<T>(), right.as<T>(), left.numel, out});
    });
}

#endif

void take_answer(Context ctx, bool* out, const bool* answer) {
    check(diopi::launch::copy_to_host(stream_of(ctx), out, answer, sizeof(bool)),
          "the answer could not be copied to the host");
}

}  // namespace

diopiError_t diopiEqual(diopiContextHandle_t ctx, bool* out, diopiConstTensorHandle_t input,
                        diopiConstTensorHandle_t other) {
    return guarded([&] {
        require(out != nullptr, "the place for the answer is null");
        const TensorView left = required_view(input, "input");
        *out = left.same_sizes(required_view(other, "other"));
        if (!*out || left.numel == 0) return;
#if !defined(__CUDACC__)
        if (dense_alike(left, view(other))) {
            bool* equal = workspace_of<bool>(ctx, 1);
            compare_dense(ctx, left, view(other), equal);
            return take_answer(ctx, out, equal);
        }
#endif
        diopiTensorHandle_t same = nullptr;
        diopiTensorHandle_t all = nullptr;
        allocated(ctx, &same, left.sizes, left.ndim, diopi_dtype_bool);
        const TensorView answer = allocated(ctx, &all, nullptr, 0, diopi_dtype_bool);
        passed_on(elementwise<Equality, Any, Compute::promote>(ctx, same, input, other));
        passed_on(impl::portable::diopiAll(ctx, all, same, nullptr));
        take_answer(ctx, out, answer.as<bool>());
    });
}

}  // namespace impl::portable
