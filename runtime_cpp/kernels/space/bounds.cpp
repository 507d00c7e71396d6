#include "bounds.h"

#include "runs.h"

namespace diopi::kernels {
namespace {

struct Between {
    int64_t low, high;

    DIOPI_HD bool operator()(int64_t index) const { return index >= low && index < high; }
};

}  // namespace

void require_index_dtype(const TensorView& index) {
    if (!is_in<Index>(index.dtype))
        fail(diopiDtypeNotSupported, "indices must be int64 or int32, not %s", diopiDtypeName(index.dtype));
}

void require_in_bounds(Context ctx, const TensorView& index, int64_t size, int dim, Negative negative) {
    require_index_dtype(index);
    if (index.numel == 0) return;
    const diopiStreamHandle_t stream = stream_of(ctx);
    const int64_t low = negative == Negative::from_the_end ? -size : 0;
    if (!launch::kSynchronous) {
        const Space<1> space = space_of(index);
        for_each_index(
            stream, index.numel,
            DIOPI_LAMBDA(int64_t i) { in_bounds(load_as<int64_t>(index, space.offset(i)), low, size); });
        return;
    }
    dispatch<Index>(index.dtype, [&](auto type) {
        const auto [found, element] = first_outside<typename decltype(type)::type>(ctx, index, Between{low, size});
        require(found == 0, "index %lld is out of bounds for dimension %d with size %lld", int64_t{element}, dim, size);
    });
}

}  // namespace diopi::kernels
