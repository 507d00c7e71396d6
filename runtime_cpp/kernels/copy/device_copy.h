// Copies and fills for a device of many threads, as elementwise expressions.
#pragma once

#include <cstring>

#include "core/scalar.h"
#include "elementwise/device_expression.h"
#include "space/packed.h"
#include "space/small_space.h"

namespace diopi::kernels {

struct Identity {
    template <class C>
    static DIOPI_HD C apply(C value) {
        return value;
    }
};

template <class In, class Out>
diopiError_t copy_typed(diopiStreamHandle_t stream, const Space<2>& space, const TensorView& target,
                        const TensorView& source) {
    using Copy = TypedExpression<Identity, In, In, Out, Argument<true, 1>>;
    return launch_expression<In, Out>(stream, Copy{{target.data, source.data}, {}}, space);
}

// Between tensors of one dtype, or of two float dtypes.
inline diopiError_t copy_on_device(diopiStreamHandle_t stream, const Space<2>& space, const TensorView& target,
                                   const TensorView& source) {
    if (target.dtype == source.dtype) {
        return dispatch_word(element_size(target.dtype), [&](auto word) {
            using Word = typename decltype(word)::type;
            return copy_typed<Word, Word>(stream, space, target, source);
        });
    }
    diopiError_t status = diopiSuccess;
    dispatch<Float>(source.dtype, [&](auto from) {
        dispatch<Float>(target.dtype, [&](auto to) {
            using In = typename decltype(from)::type;
            using Out = typename decltype(to)::type;
            if constexpr (!std::is_same_v<In, Out>) status = copy_typed<In, Out>(stream, space, target, source);
        });
    });
    return status;
}

// The bytes of the widest words, of up to 16, that hold neighbouring elements on both sides and nothing else.
inline int64_t word_bytes(const Space<2>& space, const TensorView& target, const TensorView& source) {
    const int64_t size = element_size(target.dtype);
    if (space.ndim == 0 || space.inner_stride(0) != 1 || space.inner_stride(1) != 1) return size;
    auto bits = reinterpret_cast<uintptr_t>(target.data) | reinterpret_cast<uintptr_t>(source.data) | 16;
    bits |= static_cast<uintptr_t>(space.inner_size() * size);
    for (int d = 0; d + 1 < space.ndim; ++d)
        bits |= static_cast<uintptr_t>(space.strides[0][d] * size) | static_cast<uintptr_t>(space.strides[1][d] * size);
    return static_cast<int64_t>(bits & (~bits + 1));
}

// The space in words of so many elements each.
inline Space<2> in_words(Space<2> space, int64_t elements) {
    if (elements == 1) return space;
    space.numel /= elements;
    space.sizes[space.ndim - 1] /= elements;
    for (int d = 0; d + 1 < space.ndim; ++d) {
        for (auto& strides : space.strides) strides[d] /= elements;
    }
    return space;
}

// Several copies of words in one launch, as few as they are.
template <class Word>
struct CopyBatch {
    static constexpr int kMost = 12;  // so that a kernel's arguments fit into its 4 KiB

    int count = 0;
    uint32_t numel = 0;
    uint32_t ends[kMost];
    SmallSpace<2> spaces[kMost];
    Word* targets[kMost];
    const Word* sources[kMost];

    bool full() const { return count == kMost; }

    // The space is one that SmallSpace takes, and far below 2^31 / kMost elements.
    void add(const TensorView& target, const TensorView& source, const Space<2>& space) {
        spaces[count] = SmallSpace<2>(space);
        targets[count] = target.as<Word>();
        sources[count] = source.as<Word>();
        numel += spaces[count].numel;
        ends[count++] = numel;
    }

    DIOPI_HD void operator()(int64_t i) const {
        const auto index = static_cast<uint32_t>(i);
        int part = 0;
        while (index >= ends[part]) ++part;
        const Offsets<2> at = spaces[part].offsets(index - (part == 0 ? 0 : ends[part - 1]));
        targets[part][at[0]] = sources[part][at[1]];
    }
};

inline diopiError_t fill_on_device(diopiStreamHandle_t stream, const Space<1>& space, const TensorView& target,
                                   const diopiScalar_t& value) {
    uint64_t bits = 0;
    dispatch<Storable>(target.dtype, [&](auto type) {
        const auto element = scalar_as<typename decltype(type)::type>(value);
        memcpy(&bits, &element, sizeof element);
    });
    return dispatch_word(element_size(target.dtype), [&](auto word) {
        using Word = typename decltype(word)::type;
        using Fill = TypedExpression<Identity, Word, Word, Word, Argument<false, 0>>;
        Word element;
        memcpy(&element, &bits, sizeof element);
        return launch_expression<Word, Word>(stream, Fill{{target.data}, {element}}, space);
    });
}

}  // namespace diopi::kernels
