// Rows looked up by index: embedding with its gradient and its bound on norms, and one-hot vectors.
#include <diopi/diopirt.h>

#include "copy/copy.h"
#include "core/team.h"
#include "core/unit.h"
#include "core/view.h"
#include "core/workspace.h"
#include "reduction/vector_norm.h"
#include "sorting/sorting.h"
#include "space/bounds.h"
#include "space/index.h"
#include "space/packed_rows.h"
#include "space/runs.h"

namespace impl::portable {

using namespace diopi::kernels;

namespace {

// Whether the last dimension is whole packs.
bool has_packs(const TensorView& tensor, int64_t width) {
    const int last = tensor.ndim - 1;
    bool whole = tensor.strides[last] == 1 && tensor.sizes[last] % width == 0 && starts_pack(tensor.data);
    for (int d = 0; d < last; ++d) whole = whole && tensor.strides[d] % width == 0;
    return whole;
}

// The last dimension in packs of 8 bytes, which are as good as elements to who only moves them.
TensorView in_words(TensorView tensor, int64_t width) {
    tensor.sizes[tensor.ndim - 1] /= width;
    for (int d = 0; d < tensor.ndim - 1; ++d) tensor.strides[d] /= width;
    tensor.dtype = diopi_dtype_int64;
    return recounted(tensor);
}

// Indices in row-major order as a list.
TensorView as_list(Context ctx, const TensorView& index) {
    return index.ndim == 0 ? at_least_1d(index) : joined_evenly(ctx, index, 0, index.ndim - 1);
}

template <class U, class I>
void look_up(diopiStreamHandle_t stream, const TensorView& out, const TensorView& weight, const TensorView& index) {
    using Value = typename Unit<U>::type;
    // out is [indices..., width]: its leading dimensions may have any strides.
    TensorView lead = out;
    --lead.ndim;
    const Space<1> places = space_of(recounted(lead));
    const int64_t strides[2] = {out.strides[out.ndim - 1], weight.strides[1]};
    const int64_t size = weight.sizes[0], row_stride = weight.strides[0], index_stride = index.strides[0];
    Value* target = static_cast<Value*>(out.data);
    const Value* source = static_cast<const Value*>(weight.data);
    const I* rows = index.as<I>();
    for_runs(
        stream, index.numel, weight.sizes[1], DIOPI_LAMBDA(int64_t i, int64_t begin, int64_t end) {
            Value* to = target + places.offset(i);
            const Value* from = source + in_bounds(rows[i * index_stride], 0, size) * row_stride;
            with_strides(strides, [&](const auto& step) {
                for (int64_t j = begin; j < end; ++j) to[j * step[0]] = from[j * step[1]];
            });
        });
}

// The places of the indices in ascending order, equal ones in their own, and where each row's run of them starts and
// ends.
struct IndexRuns {
    SortedPlaces sorted;
    const int64_t* starts;
    DIOPI_HD int64_t length(int64_t row) const { return starts[row + 1] - starts[row]; }
};

IndexRuns index_runs(Context ctx, const TensorView& index, int64_t rows) {
    int bits = 1;
    while (rows >> bits != 0) ++bits;
    const int64_t count = index.numel;
    const Indices value{index};
    const SortedPlaces sorted = sorted_places(ctx, 1, count, value, false, bits);
    auto* const starts = workspace_of<int64_t>(ctx, rows + 1);
    for_each_index(
        stream_of(ctx), rows + 1, DIOPI_LAMBDA(int64_t row) {
            starts[row] = partition_point(0, count, [&](int64_t k) { return value(sorted[k]) < row; });
        });
    return {sorted, starts};
}

// Each column walks the indices in order: no two threads add to one place, so that results do not depend on timing.
template <class T, class A, class I>
void add_rows(diopiStreamHandle_t stream, const TensorView& sums, const TensorView& grad, const TensorView& index,
              int64_t padding_idx, const IndexRuns& runs, bool by_frequency) {
    const int64_t stride = index.strides[0], count = index.numel, width = grad.sizes[1];
    const int64_t row_stride = grad.strides[0], column_stride = grad.strides[1];
    const I* rows = index.as<I>();
    const T* source = grad.as<T>();
    A* target = sums.as<A>();
    for_runs(
        stream, 1, width, DIOPI_LAMBDA(int64_t, int64_t begin, int64_t end) {
            for (int64_t i = 0; i < count; ++i) {
                const int64_t row = rows[i * stride];
                if (row == padding_idx) continue;
                A* to = target + row * width;
                const T* values = source + i * row_stride;
                const A scale = by_frequency ? A(1) / static_cast<A>(runs.length(row)) : A(1);
                for (int64_t j = begin; j < end; ++j) to[j] += cast<A>(values[j * column_stride]) * scale;
            }
        });
}

// A row of the table is the sum of the gradients of one run of the sorted indices, in their order: `width` of its columns.
template <class T, int width>
struct AddRunTask {
    TensorView out, grad;
    IndexRuns runs;
    int64_t padding_idx;
    bool by_frequency;

    DIOPI_HD void operator()(int64_t i, const Team& team = {}) const {
        using A = AccumulateType<T>;
        const int64_t packs = out.sizes[1] / width, row = i / packs, column = (i - row * packs) * width;
        const int64_t begin = runs.starts[row], end = row == padding_idx ? begin : runs.starts[row + 1];
        const T* const values = grad.as<T>() + column * grad.strides[1];
        A sums[width] = {};
        for (int64_t k = begin + team.rank(); k < end; k += team.size()) {
            const auto pack = load_pack<T, width>(values + runs.sorted[k] * grad.strides[0]);
            DIOPI_UNROLL
            for (int j = 0; j < width; ++j) sums[j] += cast<A>(pack.at[j]);
        }
        Pack<T, width> pack;
        DIOPI_UNROLL
        for (int j = 0; j < width; ++j) {
            const A sum = team.reduce(sums[j], Plus{});
            pack.at[j] = cast<T>(by_frequency && end > begin ? sum / static_cast<A>(end - begin) : sum);
        }
        if (team.rank() == 0) store_pack<T, width>(out.as<T>() + row * out.strides[0] + column * out.strides[1], pack);
    }
};

template <class T>
void embedding_backward(Context ctx, const TensorView& out, const TensorView& grad, const TensorView& index,
                        int64_t padding_idx, bool by_frequency) {
    const bool needs_runs = by_frequency || !Team::kAlone;
    const IndexRuns runs = needs_runs ? index_runs(ctx, index, out.sizes[0]) : IndexRuns{};
    if constexpr (Team::kAlone) {
        using A = AccumulateType<T>;
        const bool in_place = out.dtype == dtype_of<A> && out.contiguous();
        const TensorView sums = in_place ? out : temporary_like(ctx, out, dtype_of<A>);
        fill_zero(ctx, sums);
        dispatch<Index>(index.dtype, [&](auto type) {
            using I = typename decltype(type)::type;
            add_rows<T, A, I>(stream_of(ctx), sums, grad, index, padding_idx, runs, by_frequency);
        });
        if (!in_place) copy_elements(ctx, out, sums);
    } else {
        const int64_t usual = index.numel / (out.sizes[0] > 0 ? out.sizes[0] : 1);
        const auto add = [&](auto width) {
            const AddRunTask<T, width> task{out, grad, runs, padding_idx, by_frequency};
            for_each_by_teams(ctx, out.numel / width, usual, task);
        };
        using Packed = std::integral_constant<int, kRowPack<T>>;
        has_packs(out, Packed{}) && has_packs(grad, Packed{}) ? add(Packed{}) : add(std::integral_constant<int, 1>{});
    }
}

// A row that is named, once or more, is scaled once.
struct RenormTask {
    TensorView table;
    IndexRuns runs;
    NormFold fold;
    double max_norm;

    DIOPI_HD void operator()(int64_t row) const {
        if (runs.length(row) == 0) return;
        const int64_t start = row * table.strides[0], step = table.strides[1], width = table.sizes[1];
        double state = fold.start();
        for (int64_t j = 0; j < width; ++j) state = fold.step(state, load_as<double>(table, start + j * step));
        const double norm = fold.finish(state, width);
        if (!(norm > max_norm)) return;
        const double scale = max_norm / (norm + 1e-7);
        for (int64_t j = 0; j < width; ++j)
            store_as(table, start + j * step, load_as<double>(table, start + j * step) * scale);
    }
};

template <class I>
void mark(diopiStreamHandle_t stream, const TensorView& out, const TensorView& index) {
    const Space<1> from = space_of(index);
    TensorView lead = out;
    --lead.ndim;
    const Space<1> places = space_of(recounted(lead));
    const int64_t step = out.strides[out.ndim - 1];
    const I* values = index.as<I>();
    for_each_index(
        stream, index.numel,
        DIOPI_LAMBDA(int64_t i) { store_as(out, places.offset(i) + values[from.offset(i)] * step, int64_t{1}); });
}

}  // namespace

diopiError_t diopiEmbedding(Context ctx, Tensor out, ConstTensor weight, ConstTensor indices, int64_t, bool, bool) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), index = required_view(indices, "indices");
        const TensorView table = converted(ctx, required_view(weight, "weight"), result.dtype);
        require(table.ndim == 2 && result.ndim == index.ndim + 1 && result.numel == index.numel * table.sizes[1],
                "the shapes of an embedding do not fit together");
        require_known_in_bounds(ctx, index, table.sizes[0], 0, Negative::refused);
        if (result.numel == 0) return;
        const TensorView rows = as_list(ctx, index);
        const int64_t width = 8 / element_size(result.dtype);
        const bool packed = has_packs(result, width) && has_packs(table, width);
        const TensorView out_words = packed ? in_words(result, width) : result;
        const TensorView words = packed ? in_words(table, width) : table;
        dispatch_unit(words.dtype, [&](auto unit) {
            dispatch<Index>(rows.dtype, [&](auto type) {
                using U = typename decltype(unit)::plain;
                look_up<U, typename decltype(type)::type>(stream_of(ctx), out_words, words, rows);
            });
        });
    });
}

diopiError_t diopiEmbeddingBackward(Context ctx, Tensor out, ConstTensor grad, ConstTensor indices, int64_t num_weights,
                                    int64_t padding_idx, bool scale_grad_byfreq, bool sparse) {
    return guarded([&] {
        require(!sparse, "sparse gradients of an embedding are not supported");
        const TensorView result = required_view(out, "out"), index = required_view(indices, "indices");
        require(result.ndim == 2 && result.sizes[0] == num_weights,
                "the gradient of an embedding has one row for each of its weights");
        require_in_bounds(ctx, index, num_weights, 0, Negative::refused);
        const TensorView rows = as_rows(ctx, converted(ctx, required_view(grad, "grad"), result.dtype));
        require(rows.sizes[0] == index.numel && rows.sizes[1] == result.sizes[1],
                "the shapes of an embedding's gradient do not fit together");
        dispatch<Float>(result.dtype, [&](auto type) {
            embedding_backward<typename decltype(type)::type>(ctx, result, rows, as_list(ctx, index), padding_idx,
                                                              scale_grad_byfreq);
        });
    });
}

diopiError_t diopiEmbeddingRenorm_(Context ctx, Tensor inout, ConstTensor indices, double max_norm, double norm_type) {
    return guarded([&] {
        const TensorView table = required_view(inout, "inout");
        require(table.ndim == 2 && is_float_dtype(table.dtype),
                "the norms of an embedding are those of rows of floats");
        require_in_bounds(ctx, required_view(indices, "indices"), table.sizes[0], 0, Negative::refused);
        const TensorView index = as_list(ctx, view(indices));
        const IndexRuns runs = index_runs(ctx, index, table.sizes[0]);
        for_each(ctx, table.sizes[0], RenormTask{table, runs, norm_fold(norm_type), max_norm});
    });
}

diopiError_t diopiOneHot(Context ctx, Tensor out, ConstTensor input, int64_t num_classes) {
    return guarded([&] {
        const TensorView result = required_view(out, "out"), index = required_view(input, "input");
        require(result.ndim == index.ndim + 1, "a one-hot tensor has one dimension more than its classes");
        const int64_t classes = result.sizes[result.ndim - 1];
        require(num_classes < 0 || num_classes == classes,
                "the last dimension of a one-hot tensor has the size num_classes");
        require_storable(result);
        require_in_bounds(ctx, index, classes, result.ndim - 1, Negative::refused);
        fill_zero(ctx, result);
        dispatch<Index>(index.dtype,
                        [&](auto type) { mark<typename decltype(type)::type>(stream_of(ctx), result, index); });
    });
}

}  // namespace impl::portable
