// Sequences of different lengths in one tensor: behind each other, padded, or scattered over the blocks of a cache.
#pragma once

#include "core/workspace.h"
#include "space/element.h"
#include "space/window.h"

namespace diopi::kernels {

struct Sequences {
    int64_t count;
    int64_t longest;
    const int64_t* spans;  // on the device: first position and end of each; null where all of them are [0, longest)
    TensorView table;      // (sequence, block): the block that holds positions; undefined where position p is row p
    int64_t block_size;

    DIOPI_HD Range span(int64_t sequence) const {
        return spans == nullptr ? Range{0, longest} : Range{spans[2 * sequence], spans[2 * sequence + 1]};
    }

    DIOPI_HD int64_t row(int64_t sequence, int64_t position) const {
        if (!table.defined()) return position;
        const int64_t block = position / block_size;
        return number_at<int64_t>(table, sequence, block) * block_size + position - block * block_size;
    }
};

inline Sequences even_sequences(int64_t count, int64_t length) { return {count, length, nullptr, undefined_view(), 1}; }

// Sequence b is [ends[b], ends[b + 1]).
struct SpansByEnds {
    TensorView ends;
    DIOPI_HD Range operator()(int64_t b) const {
        return {number_at<int64_t>(ends, b), number_at<int64_t>(ends, b + 1)};
    }
};

// Sequence b has lengths[b] positions from starts[b] on; from zero where there are no starts.
struct SpansByLengths {
    TensorView starts;
    TensorView lengths;
    DIOPI_HD Range operator()(int64_t b) const {
        const int64_t start = starts.defined() ? number_at<int64_t>(starts, b) : 0;
        return {start, start + number_at<int64_t>(lengths, b)};
    }
};

// Sequence b is the last lengths[b] of `end` positions.
struct SpansUpTo {
    int64_t end;
    TensorView lengths;
    DIOPI_HD Range operator()(int64_t b) const { return {end - number_at<int64_t>(lengths, b), end}; }
};

template <class Spans>
struct SpanTask {
    int64_t* target;
    Spans spans;
    int64_t longest;
    int64_t positions;

    // What the lists say beyond the tensor, or beyond the promised length, is not read.
    DIOPI_HD void operator()(int64_t b) const {
        Range span = spans(b);
        if (span.begin < 0) span.begin = 0;
        if (span.end > positions) span.end = positions;
        if (span.end > span.begin + longest) span.end = span.begin + longest;
        target[2 * b] = span.begin;
        target[2 * b + 1] = span.end < span.begin ? span.begin : span.end;
    }
};

// `count` sequences of at most `longest` of the `positions` that there are.
template <class Spans>
Sequences sequences_of(Context ctx, int64_t count, int64_t longest, int64_t positions, const Spans& spans) {
    require(count >= 0 && longest >= 0, "a list of sequences has one length or more, and none is negative");
    int64_t* target = workspace_of<int64_t>(ctx, 2 * count);
    for_each(ctx, count, SpanTask<Spans>{target, spans, longest, positions});
    return {count, longest, target, undefined_view(), 1};
}

inline void require_list(const TensorView& list, const char* name) {
    require(list.ndim == 1 && is_in<Index>(list.dtype), "'%s' is a list of int32 or int64", name);
}

}  // namespace diopi::kernels
