// sort, argsort and topk along one dimension: a stable merge sort of each line. NaN is the greatest value, as in torch.
#include <diopi/diopirt.h>

#include "core/bounds.h"
#include "core/copy.h"
#include "core/index.h"
#include "core/runs.h"
#include "core/sorting.h"
#include "core/view.h"
#include "core/workspace.h"

namespace diopi::kernels {
namespace {

// The lines along the sorted dimension, with one stride along them for each operand.
struct Lines {
    Space<3> starts;  // values, indices, input
    int64_t length;   // of an input line
    int64_t kept;     // of a result line
    int64_t step[3];
};

// Where the sorted elements came from.
struct Places {
    void* data;   // null where nobody asks
    bool narrow;  // int32 instead of int64

    DIOPI_HD void store(int64_t at, int64_t place) const {
        if (narrow) {
            static_cast<int32_t*>(data)[at] = static_cast<int32_t>(place);
        } else {
            static_cast<int64_t*>(data)[at] = place;
        }
    }
};

// `indices`, an undefined view where nobody asks for them. Fails where they are neither int64 nor int32.
Places places_of(const TensorView& indices) {
    if (!indices) return {nullptr, false};
    require_index_dtype(indices);
    return {indices.data, indices.dtype == diopi_dtype_int32};
}

// Lines that have room of their own: all of them on a GPU; on the host few, whose room stays in the cache.
constexpr int64_t kRooms = kRunLength == 1 ? INT64_MAX : 64;

template <class T>
void sort_lines(diopiContextHandle_t ctx, const Lines& lines, T* values, const Places& places, const T* input,
                bool descending) {
    constexpr int64_t kShort = 32;
    const bool selects = lines.kept <= kShort && lines.kept * 8 <= lines.length;
    const int64_t room = selects ? lines.kept : lines.length;
    const int64_t rooms = kRooms < lines.starts.numel ? kRooms : lines.starts.numel;
    auto* entries = workspace_of<Entry<T>>(ctx, rooms * room);
    auto* spare = selects ? nullptr : workspace_of<Entry<T>>(ctx, rooms * room);
    const Order<T> order{descending};
    for_each_index(stream_of(ctx), rooms, DIOPI_LAMBDA(int64_t own) {
        for (int64_t line = own; line < lines.starts.numel; line += rooms) {
            const Offsets<3> at = lines.starts.offsets(line);
            const T* from = input + at[2];
            Entry<T>* sorted = entries + own * room;
            if (selects) {
                keep_first([&](int64_t j) { return from[j * lines.step[2]]; }, lines.length, sorted, lines.kept, order);
            } else {
                for (int64_t j = 0; j < lines.length; ++j) sorted[j] = Entry<T>{from[j * lines.step[2]], j};
                sorted = merge_sort(sorted, spare + own * room, lines.length, order);
            }
            for (int64_t j = 0; j < lines.kept; ++j) {
                if (values != nullptr) values[at[0] + j * lines.step[0]] = sorted[j].value;
                if (places.data != nullptr) places.store(at[1] + j * lines.step[1], sorted[j].place);
            }
        }
    });
}

// values and indices may each be undefined. Both have `kept` elements along `dim`.
void sort(diopiContextHandle_t ctx, const TensorView& values, const TensorView& indices, const TensorView& tensor,
          int64_t dim, int64_t kept, bool descending) {
    const TensorView input = at_least_1d(tensor);
    const int at = normalized_dim(dim, input.ndim);
    require(kept >= 0 && kept <= input.sizes[at], "%lld elements cannot be taken from dimension %d of size %lld",
            static_cast<long long>(kept), at, static_cast<long long>(input.sizes[at]));
    TensorView result = input;
    result.sizes[at] = kept;
    recounted(result);
    TensorView outs[] = {result, result};
    if (values) outs[0] = at_least_1d(values);
    if (indices) outs[1] = at_least_1d(indices);
    for (const TensorView& out : outs)
        require(out.same_sizes(result),
                "the shape of a sorted tensor is that of its input, cut off along the dimension");
    if (values && values.dtype != input.dtype) fail_dtype(values.dtype);
    const Places places = places_of(indices);
    const TensorView starts[] = {without_dim(outs[0], at), without_dim(outs[1], at), without_dim(input, at)};
    const Lines lines{broadcast_space<3>(starts[2], starts),
                      input.sizes[at],
                      kept,
                      {outs[0].strides[at], outs[1].strides[at], input.strides[at]}};
    if (result.numel == 0) return;
    dispatch<Any>(input.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        sort_lines<T>(ctx, lines, values ? values.as<T>() : nullptr, places, input.as<T>(), descending);
    });
}

template <class T>
void put_back(diopiStreamHandle_t stream, const TensorView& grad_input, const TensorView& grad_output,
              const TensorView& indices, int dim) {
    const TensorView starts[] = {without_dim(grad_output, dim), without_dim(indices, dim),
                                 without_dim(grad_input, dim)};
    const Lines lines{broadcast_space<3>(starts[0], starts),
                      grad_output.sizes[dim],
                      0,
                      {grad_output.strides[dim], indices.strides[dim], grad_input.strides[dim]}};
    T* target = grad_input.as<T>();
    const T* source = grad_output.as<T>();
    const int64_t* places = indices.as<int64_t>();
    for_each_index(stream, lines.starts.numel, DIOPI_LAMBDA(int64_t line) {
        const Offsets<3> at = lines.starts.offsets(line);
        for (int64_t j = 0; j < lines.length; ++j)
            target[at[2] + places[at[1] + j * lines.step[1]] * lines.step[2]] = source[at[0] + j * lines.step[0]];
    });
}

}  // namespace
}  // namespace diopi::kernels

namespace impl {
namespace portable {

using namespace diopi::kernels;

// The sort is stable always, which is right for every value of pStable.
diopiError_t diopiSort(diopiContextHandle_t ctx, diopiTensorHandle_t values, diopiTensorHandle_t indices,
                       diopiConstTensorHandle_t input, int64_t dim, bool descending, const bool*) {
    return guarded([&] {
        const TensorView source = required_view(input, "input");
        const TensorView lined = at_least_1d(source);
        sort(ctx, required_view(values, "values"), required_view(indices, "indices"), source, dim,
             lined.sizes[normalized_dim(dim, lined.ndim)], descending);
    });
}

diopiError_t diopiArgsort(diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input, bool,
                          const int64_t* dim, bool descending) {
    return guarded([&] {
        const TensorView source = required_view(input, "input");
        const TensorView lined = at_least_1d(source);
        const int64_t along = dim == nullptr ? -1 : *dim;
        sort(ctx, undefined_view(), required_view(out, "out"), source, along,
             lined.sizes[normalized_dim(along, lined.ndim)], descending);
    });
}

// The result is sorted always, which is right for every value of `sorted`.
diopiError_t diopiTopk(diopiContextHandle_t ctx, diopiTensorHandle_t values, diopiTensorHandle_t indices,
                       diopiConstTensorHandle_t input, int64_t k, int64_t dim, bool largest, bool) {
    return guarded([&] {
        sort(ctx, required_view(values, "values"), required_view(indices, "indices"), required_view(input, "input"),
             dim, k, largest);
    });
}

diopiError_t diopiSortBackward(diopiContextHandle_t ctx, diopiTensorHandle_t grad_input,
                               diopiConstTensorHandle_t grad_output, int64_t dim, diopiConstTensorHandle_t indices,
                               diopiSize_t, bool keepdim) {
    return guarded([&] {
        const TensorView result = at_least_1d(required_view(grad_input, "grad_input"));
        const int at = normalized_dim(dim, result.ndim);
        TensorView grads = required_view(grad_output, "grad_output");
        TensorView places = required_view(indices, "indices");
        if (!keepdim && grads.ndim < result.ndim) grads = with_dim(grads, at, 1, 0);
        if (!keepdim && places.ndim < result.ndim) places = with_dim(places, at, 1, 0);
        grads = at_least_1d(converted(ctx, grads, result.dtype));
        places = at_least_1d(converted(ctx, places, diopi_dtype_int64));
        require_same_sizes(grads, places, "grad_output", "indices");
        fill_zero(ctx, result);
        if (grads.numel == 0) return;
        dispatch<Float>(result.dtype, [&](auto type) {
            put_back<typename decltype(type)::type>(stream_of(ctx), result, grads, places, at);
        });
    });
}

}  // namespace portable
}  // namespace impl
