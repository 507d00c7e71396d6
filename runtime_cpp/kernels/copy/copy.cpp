// Copies between layouts and dtypes: one memcpy or one conversion where both sides are dense, else row by row.
#include "copy.h"

#include <algorithm>
#include <cstring>

#include "convert.h"
#include "core/scalar.h"
#include "core/view.h"
#include "elementwise/pointwise.h"
#include "reduction/reductions.h"
#include "space/index.h"
#include "space/runs.h"
#include "space/strides.h"

#if defined(__CUDACC__)
#include "device_copy.h"
#endif

namespace diopi::kernels {
namespace {

// The parts of a complex tensor along a dimension of their own.
TensorView parts(const TensorView& tensor) { return with_dim(part(tensor, 0), tensor.ndim, 2, 1); }

// Complex elements travel as words of the same size; complex128 as its parts.
TensorView as_words(TensorView tensor) {
    if (tensor.dtype == diopi_dtype_complex32) tensor.dtype = diopi_dtype_uint32;
    if (tensor.dtype == diopi_dtype_complex64) tensor.dtype = diopi_dtype_uint64;
    return tensor.dtype == diopi_dtype_complex128 ? parts(tensor) : tensor;
}

bool same_memory(const TensorView& a, const TensorView& b) {
    if (a.data != b.data || a.dtype != b.dtype || !a.same_sizes(b)) return false;
    for (int d = 0; d < a.ndim; ++d) {
        if (a.sizes[d] != 1 && a.strides[d] != b.strides[d]) return false;
    }
    return true;
}

// Where one is complex and the other is of another dtype.
void copy_parts(Context ctx, const TensorView& target, const TensorView& source) {
    if (target.dtype == diopi_dtype_bool) {
        const TensorView truth = temporary_like(ctx, source, diopi_dtype_bool);
        reduce_truth(ctx, truth, parts(source), DimSet{1} << source.ndim, false);
        return copy_elements(ctx, target, truth);
    }
    const bool complex = is_complex_dtype(source.dtype);
    if (!is_complex_dtype(target.dtype)) return copy_elements(ctx, target, part(source, 0));
    copy_elements(ctx, part(target, 0), complex ? part(source, 0) : source);
    complex ? copy_elements(ctx, part(target, 1), part(source, 1)) : fill_zero(ctx, part(target, 1));
}

#if defined(__CUDACC__)

// Where an integer is on either side, a switch over the dtype per element.
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

// Small copies of one size of words become one launch: a launch takes longer than they do.
bool copy_together(diopiContextHandle_t ctx, const std::vector<Copy>& copies) {
    constexpr int64_t small = int64_t{1} << 18;  // elements
    const auto joins = [&](const Copy& copy) {
        return copy.target.dtype == copies[0].target.dtype && copy.source.dtype == copies[0].target.dtype &&
               copy.target.numel <= small && !same_memory(copy.target, copy.source);
    };
    if (!std::all_of(copies.begin(), copies.end(), joins) || is_complex_dtype(copies[0].target.dtype)) return false;
    require_storable(copies[0].target);
    const diopiStreamHandle_t stream = stream_of(ctx);
    const int64_t size = element_size(copies[0].target.dtype);
    int64_t bytes = 16;
    std::vector<Space<2>> spaces;
    for (const Copy& copy : copies) {
        const TensorView views[2] = {copy.target, copy.source};
        spaces.push_back(broadcast_space<2>(copy.target, views, Visit::any_order));
        if (!SmallSpace<2>::fits(spaces.back())) return false;
        if (copy.target.numel > 0) bytes = std::min(bytes, word_bytes(spaces.back(), copy.target, copy.source));
    }
    const auto run = [&](auto word) {
        CopyBatch<typename decltype(word)::type> batch;
        for (size_t k = 0; k < copies.size(); ++k) {
            if (spaces[k].numel == 0) continue;
            if (batch.full()) {
                check_launch(launch::parallel_for(stream, batch.numel, batch));
                batch = {};
            }
            batch.add(copies[k].target, copies[k].source, in_words(spaces[k], bytes / size));
        }
        return launch::parallel_for(stream, batch.numel, batch);
    };
    check_launch(bytes == 16 ? run(Type<PackWords<16>>{}) : dispatch_word(bytes, run));
    return true;
}

#else

bool copy_together(diopiContextHandle_t, const std::vector<Copy>&) { return false; }

constexpr int64_t kPiece = int64_t{1} << 18;  // bytes that one memcpy moves

void dense_copy(diopiStreamHandle_t stream, const TensorView& target, const TensorView& source) {
    char* to = target.as<char>();
    const char* from = source.as<char>();
    const int64_t bytes = target.numel * element_size(target.dtype);
    for_each_index(stream, (bytes + kPiece - 1) / kPiece, [=](int64_t i) {
        const int64_t begin = i * kPiece;
        memcpy(to + begin, from + begin, static_cast<size_t>(std::min(kPiece, bytes - begin)));
    });
}

void dense_conversion(diopiStreamHandle_t stream, const TensorView& target, const TensorView& source) {
    char* to = target.as<char>();
    const char* from = source.as<char>();
    const int64_t to_size = element_size(target.dtype), from_size = element_size(source.dtype);
    const ConvertRun convert = converter(source.dtype, target.dtype);
    for_runs(stream, 1, target.numel, [=](int64_t, int64_t begin, int64_t end) {
        convert(from + begin * from_size, 1, to + begin * to_size, 1, end - begin);
    });
}

template <class Word>
void copy_loop(const void* const* inputs, const double*, void* out, int64_t first, int64_t count) {
    memcpy(static_cast<Word*>(out) + first, static_cast<const Word*>(inputs[0]) + first,
           static_cast<size_t>(count) * sizeof(Word));
}

// A copy whose target runs along one dimension and whose source runs along another: in tiles of whole cache lines.
template <class Word>
struct TransposedCopy {
    static constexpr int64_t kTile = 64 / sizeof(Word);

    Space<2> rest;  // the other dimensions
    int64_t rows, row_stride;        // the dimension that the source runs along; its stride in the target
    int64_t columns, column_stride;  // the dimension that the target runs along; its stride in the source
    Word* target;
    const Word* source;

    void operator()(int64_t i) const {
        const int64_t bands = (rows + kTile - 1) / kTile;
        const Offsets<2> at = rest.offsets(i / bands);
        const int64_t row = i % bands * kTile;
        Word* to = target + at.at[0] + row * row_stride;
        const Word* from = source + at.at[1] + row;
        const int64_t height = rows - row < kTile ? rows - row : kTile;
        for (int64_t column = 0; column < columns; column += kTile) {
            const int64_t width = columns - column < kTile ? columns - column : kTile;
            if (height == kTile && width == kTile) {
                tile<true>(to + column, from + column * column_stride, kTile, kTile);
            } else {
                tile<false>(to + column, from + column * column_stride, height, width);
            }
        }
    }

    template <bool whole>
    void tile(Word* to, const Word* from, int64_t height, int64_t width) const {
        if (whole) height = width = kTile;
        Word words[kTile][kTile];
        for (int64_t c = 0; c < width; ++c) {
            for (int64_t r = 0; r < height; ++r) words[r][c] = from[c * column_stride + r];
        }
        for (int64_t r = 0; r < height; ++r) {
            for (int64_t c = 0; c < width; ++c) to[r * row_stride + c] = words[r][c];
        }
    }
};

// False where the copy is none of that kind.
template <class Word>
bool copy_transposed(diopiStreamHandle_t stream, const Space<2>& space, const TensorView& target,
                     const TensorView& source) {
    const int last = space.ndim - 1;
    int along = 0;
    while (along < last && space.strides[1][along] != 1) ++along;
    if (last < 1 || along == last || space.strides[0][last] != 1) return false;
    TransposedCopy<Word> task{};
    for (int d = 0; d < last; ++d) {
        if (d != along) task.rest.append(space.sizes[d], {space.strides[0][d], space.strides[1][d]});
    }
    task.rows = space.sizes[along];
    task.row_stride = space.strides[0][along];
    task.columns = space.sizes[last];
    task.column_stride = space.strides[1][last];
    task.target = target.as<Word>();
    task.source = source.as<Word>();
    const int64_t bands = (task.rows + task.kTile - 1) / task.kTile;
    check_launch(launch::parallel_for(stream, task.rest.numel * bands, task));
    return true;
}

#endif

}  // namespace

TensorView part(TensorView tensor, int which) {
    constexpr int behind = diopi_dtype_complex32 - diopi_dtype_float16;  // both kinds in the order of their sizes
    if (!is_complex_dtype(tensor.dtype)) fail_dtype(tensor.dtype);
    tensor.dtype = static_cast<diopiDtype_t>(tensor.dtype - behind);
    for (int d = 0; d < tensor.ndim; ++d) tensor.strides[d] *= 2;
    return shifted(tensor, which);
}

void copy_elements(diopiContextHandle_t ctx, const TensorView& target_view, const TensorView& source_view) {
    require(target_view.defined() && source_view.defined(), "a copy needs two tensors");
    if (target_view.dtype != source_view.dtype &&
        (is_complex_dtype(target_view.dtype) || is_complex_dtype(source_view.dtype)))
        return copy_parts(ctx, target_view, source_view);
    if (same_memory(target_view, source_view)) return;
    const TensorView views[2] = {as_words(target_view), as_words(source_view)};
    const TensorView &target = views[0], &source = views[1];
    if (target.numel == 0) return;
    require_storable(target);
    require_storable(source);
    const diopiStreamHandle_t stream = stream_of(ctx);
    const Space<2> space = broadcast_space<2>(target, views, Visit::any_order);
#if defined(__CUDACC__)
    const bool typed = target.dtype == source.dtype || (is_float_dtype(target.dtype) && is_float_dtype(source.dtype));
    check_launch(typed ? copy_on_device(stream, space, target, source)
                       : launch::parallel_for(stream, target.numel, ElementCopy{space, target, source}));
#else
    if (space.contiguous()) {
        if (target.dtype == source.dtype) {
            dense_copy(stream, target, source);
        } else {
            dense_conversion(stream, target, source);
        }
        return;
    }
    const int64_t size = element_size(target.dtype);
    const auto across = [&](auto word) {
        return copy_transposed<typename decltype(word)::type>(stream, space, target, source);
    };
    if (target.dtype == source.dtype && dispatch_word(size, across)) return;
    const auto loop = [](auto word) -> ExpressionCode { return &copy_loop<typename decltype(word)::type>; };
    const ExpressionForm form{target.dtype, target.dtype, dispatch_word(size, loop)};
    check_launch(launch_pointwise(stream, form, views, 1));
#endif
}

void copy_all(diopiContextHandle_t ctx, const std::vector<Copy>& copies) {
    if (copies.size() > 1 && copy_together(ctx, copies)) return;
    for (const Copy& copy : copies) copy_elements(ctx, copy.target, copy.source);
}

void fill_elements(diopiContextHandle_t ctx, const TensorView& target, const diopiScalar_t& value) {
    require(target.defined(), "a fill needs a tensor");
    if (target.numel == 0) return;
    require_storable(target);
    const diopiStreamHandle_t stream = stream_of(ctx);
    const TensorView* const operands[1] = {&target};
    const Space<1> space = broadcast_space<1>(target, operands, Visit::any_order);
#if defined(__CUDACC__)
    check_launch(fill_on_device(stream, space, target, value));
#else
    const Runs<1> runs = runs_of(space);
    dispatch<Storable>(target.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        T* const first = target.as<T>();
        const T with = scalar_as<T>(value);
        for_runs(stream, runs.outer.numel, runs.length, [=](int64_t row, int64_t begin, int64_t end) {
            T* const to = first + runs.outer.offset(row);
            with_strides(runs.stride, [&](const auto& stride) {
                for (int64_t i = begin; i < end; ++i) to[i * stride[0]] = with;
            });
        });
    });
#endif
}

}  // namespace diopi::kernels
