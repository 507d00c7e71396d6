// Copies between layouts and dtypes: one memcpy or one conversion where both sides are dense, else row by row.
#include "copy.h"

#include <cstring>

#include "index.h"
#include "pointwise.h"
#include "scalar.h"

namespace diopi::kernels {
namespace {

// Complex elements travel as words of the same size; complex128 as two of them.
TensorView as_words(TensorView tensor) {
    if (tensor.dtype == diopi_dtype_complex32) tensor.dtype = diopi_dtype_uint32;
    if (tensor.dtype == diopi_dtype_complex64) tensor.dtype = diopi_dtype_uint64;
    if (tensor.dtype == diopi_dtype_complex128) {
        require(tensor.ndim < kMaxDims, "a complex128 tensor has %d dimensions, a copy takes one less", tensor.ndim);
        tensor.dtype = diopi_dtype_uint64;
        for (int d = 0; d < tensor.ndim; ++d) tensor.strides[d] *= 2;
        tensor.sizes[tensor.ndim] = 2;
        tensor.strides[tensor.ndim++] = 1;
        tensor.numel *= 2;
    }
    return tensor;
}

struct ElementCopy {
    Space<2> space;
    TensorView target;
    TensorView source;

    DIOPI_HD void operator()(int64_t i) const {
        const Offsets<2> at = space.offsets(i);
        switch (target.dtype) {  // integers pass through int64, all else through double: both are exact here
            case diopi_dtype_float16:
            case diopi_dtype_bfloat16:
            case diopi_dtype_float32:
            case diopi_dtype_float64: store_as(target, at.at[0], load_as<double>(source, at.at[1])); break;
            case diopi_dtype_bool: store_as(target, at.at[0], load_as<bool>(source, at.at[1])); break;
            case diopi_dtype_uint64: store_as(target, at.at[0], load_as<uint64_t>(source, at.at[1])); break;
            default: store_as(target, at.at[0], load_as<int64_t>(source, at.at[1])); break;
        }
    }
};

#if !defined(__CUDACC__)

struct DenseCopy {
    void* target;
    const void* source;
    int64_t bytes;
    void operator()() const { memcpy(target, source, static_cast<size_t>(bytes)); }
};

struct DenseConversion {
    ConvertRun convert;
    void* target;
    const void* source;
    int64_t count;
    void operator()() const { convert(source, 1, target, 1, count); }
};

template <class Word>
void copy_loop(const void* const* inputs, const double*, void* out, int64_t count) {
    memcpy(out, inputs[0], static_cast<size_t>(count) * sizeof(Word));
}

ExpressionLoop copy_loop_of(int64_t size) {
    switch (size) {
        case 1: return &copy_loop<uint8_t>;
        case 2: return &copy_loop<uint16_t>;
        case 4: return &copy_loop<uint32_t>;
        default: return &copy_loop<uint64_t>;
    }
}

#endif

struct ElementFill {
    Space<1> space;
    TensorView target;
    diopiScalar_t value;
    bool is_float;

    DIOPI_HD void operator()(int64_t i) const {
        const int64_t at = space.offset(i);
        if (is_float) {
            store_as(target, at, value.fval);
        } else {
            store_as(target, at, value.ival);
        }
    }
};

#if !defined(__CUDACC__)

template <class T>
struct DenseFill {
    T* target;
    int64_t count;
    T value;
    void operator()() const {
        for (int64_t i = 0; i < count; ++i) target[i] = value;
    }
};

#endif

bool same_memory(const TensorView& a, const TensorView& b) {
    if (a.data != b.data || a.dtype != b.dtype || !a.same_sizes(b)) return false;
    for (int d = 0; d < a.ndim; ++d) {
        if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
    }
    return true;
}

constexpr const char* kNotLaunched = "the device did not take the launch of a copy";

}  // namespace

void copy_elements(diopiContextHandle_t ctx, const TensorView& target_view, const TensorView& source_view) {
    require(target_view.defined() && source_view.defined(), "a copy needs two tensors");
    if (is_complex_dtype(target_view.dtype) || is_complex_dtype(source_view.dtype)) {
        if (target_view.dtype != source_view.dtype) fail_dtype(source_view.dtype);
    }
    if (same_memory(target_view, source_view)) return;
    const TensorView views[2] = {as_words(target_view), as_words(source_view)};
    const auto& [target, source] = views;
    if (target.numel == 0) return;
    require_storable(target);
    require_storable(source);
    const diopiStreamHandle_t stream = stream_of(ctx);
    const Space<2> space = broadcast_space<2>(target, views, Visit::any_order);
#if defined(__CUDACC__)
    check(launch::parallel_for(stream, target.numel, ElementCopy{space, target, source}), kNotLaunched);
#else
    if (space.contiguous()) {
        if (target.dtype == source.dtype) {
            check(launch::single_task(stream,
                                      DenseCopy{target.data, source.data, target.numel * element_size(target.dtype)}),
                  kNotLaunched);
        } else {
            check(launch::single_task(stream, DenseConversion{converter(source.dtype, target.dtype), target.data,
                                                              source.data, target.numel}),
                  kNotLaunched);
        }
        return;
    }
    Pointwise plan;
    plan.loop = copy_loop_of(element_size(target.dtype));
    plan_pointwise(plan, views, 1, target.dtype, target.dtype);
    check(launch::single_task(stream, plan), kNotLaunched);
#endif
}

void fill_elements(diopiContextHandle_t ctx, const TensorView& target, const diopiScalar_t& value) {
    require(target.defined(), "a fill needs a tensor");
    if (target.numel == 0) return;
    require_storable(target);
    const diopiStreamHandle_t stream = stream_of(ctx);
    const TensorView* const operands[1] = {&target};
    const Space<1> space = broadcast_space<1>(target, operands, Visit::any_order);
#if !defined(__CUDACC__)
    if (space.contiguous()) {
        dispatch<Storable>(target.dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            check(launch::single_task(stream, DenseFill<T>{target.as<T>(), target.numel, scalar_as<T>(value)}),
                  kNotLaunched);
        });
        return;
    }
#endif
    if (is_complex_dtype(value.stype)) fail_dtype(value.stype);
    check(launch::parallel_for(stream, target.numel, ElementFill{space, target, value, is_float_scalar(value)}),
          kNotLaunched);
}

}  // namespace diopi::kernels
