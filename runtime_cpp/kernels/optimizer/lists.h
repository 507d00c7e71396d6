// Lists of tensors: one launch over the elements of all of them, whose addresses travel as its argument.
#pragma once

#include <cstdint>
#include <type_traits>

#include "space/access.h"
#include "copy/copy.h"
#include "core/device_code.h"
#include "core/tensor.h"
#include "space/index.h"
#include "space/packed.h"
#include "space/packed_rows.h"

namespace diopi::kernels {

// One entry of `N` lists as runs of memory: tensors of one dtype and shape whose elements lie in one order without gaps.
template <int N>
struct ListEntry {
    void* data[N];
    int64_t numel;

    // Whether the tensors are so; all are defined.
    static bool fits(const TensorView (&tensors)[N]) {
        const Space<N> space = broadcast_space<N>(tensors[0], tensors, Visit::any_order);
        bool dense = space.ndim <= 1;
        for (int n = 0; n < N; ++n) {
            dense = dense && tensors[n].dtype == tensors[0].dtype && tensors[n].same_sizes(tensors[0]) &&
                    (tensors[0].numel <= 1 || space.inner_stride(n) == 1);
        }
        return dense;
    }

    explicit ListEntry(const TensorView (&tensors)[N]) : numel(tensors[0].numel) {
        for (int n = 0; n < N; ++n) data[n] = tensors[n].data;
    }
};

constexpr int kMostEntries = 384;  // of one launch, whose argument may have 32 KB

// What an operation of lists does to one element: `Op::kTensors` is how many lists it has, op.writes(n) whether it writes
// one, op.entry(k) what it must know of an entry, and op(values, known) does the element.
template <class T, class Op>
struct ListTask {
    static constexpr int N = Op::kTensors;
    using C = ComputeType<T>;

    // A piece is what one call takes: a run on a host; on a GPU a few packs, apart by those of its neighbours.
    static constexpr bool kPacks = !Team::kAlone;
    static constexpr int kWidth = kPacks ? kRowPack<T> : 1;
    static constexpr int64_t kNeighbours = 32, kEach = 4;
    static constexpr int64_t kRun = kPacks ? kWidth * kNeighbours * kEach : 4096;

    Op op;
    int entries = 0;
    int64_t pieces[kMostEntries] = {};  // of the entries up to each
    int64_t numel[kMostEntries];
    void* data[kMostEntries][N];

    explicit ListTask(const Op& operation) : op(operation) {}

    int64_t count() const { return entries == 0 ? 0 : pieces[entries - 1]; }

    void add(const ListEntry<N>& entry) {
        const int64_t runs = (entry.numel + kRun - 1) / kRun;
        pieces[entries] = count() + runs * (kPacks ? kNeighbours : 1);
        numel[entries] = entry.numel;
        for (int n = 0; n < N; ++n) data[entries][n] = entry.data[n];
        ++entries;
    }

    DIOPI_HD void operator()(int64_t i) const {
        int first = 0, last = entries - 1;
        while (first < last) {
            const int middle = (first + last) / 2;
            pieces[middle] > i ? last = middle : first = middle + 1;
        }
        const auto known = op.entry(first);
        if (known.skips()) return;
        const int64_t piece = i - (first == 0 ? 0 : pieces[first - 1]);
        if constexpr (kPacks) {
            packs(first, piece, known);
        } else {
            run(first, piece * kRun, known);
        }
    }

    template <class Known>
    DIOPI_HD_INLINED void run(int entry, int64_t begin, const Known& known) const {
        const int64_t rest = numel[entry] - begin, end = begin + (rest < kRun ? rest : kRun);
        T* at[N];
        for (int n = 0; n < N; ++n) at[n] = static_cast<T*>(data[entry][n]);
        DIOPI_VECTOR_LOOP
        for (int64_t k = begin; k < end; ++k) {
            C values[N];
            for (int n = 0; n < N; ++n) values[n] = cast<C>(at[n][k]);
            op(values, known);
            for (int n = 0; n < N; ++n) {
                if (op.writes(n)) at[n][k] = cast<T>(values[n]);
            }
        }
    }

    template <class Known>
    DIOPI_HD_INLINED void packs(int entry, int64_t piece, const Known& known) const {
        const int64_t end = numel[entry];
        bool aligned = true;
        for (int n = 0; n < N; ++n) aligned = aligned && starts_pack(data[entry][n]);
        for (int64_t k = 0; k < kEach; ++k) {
            const int64_t begin = ((piece / kNeighbours * kEach + k) * kNeighbours + piece % kNeighbours) * kWidth;
            if (aligned && begin + kWidth <= end) {
                Pack<T, kWidth> all[N];
                DIOPI_UNROLL
                for (int n = 0; n < N; ++n) all[n] = load_pack<T, kWidth>(static_cast<T*>(data[entry][n]) + begin);
                DIOPI_UNROLL
                for (int e = 0; e < kWidth; ++e) {
                    C values[N];
                    DIOPI_UNROLL
                    for (int n = 0; n < N; ++n) values[n] = cast<C>(all[n].at[e]);
                    op(values, known);
                    DIOPI_UNROLL
                    for (int n = 0; n < N; ++n) all[n].at[e] = cast<T>(values[n]);
                }
                DIOPI_UNROLL
                for (int n = 0; n < N; ++n) {
                    if (op.writes(n)) {
                        store_pack<T, kWidth>(static_cast<T*>(data[entry][n]) + begin, all[n]);
                    }
                }
                continue;
            }
            for (int64_t at = begin; at < begin + kWidth && at < end; ++at) {
                C values[N];
                for (int n = 0; n < N; ++n) values[n] = cast<C>(static_cast<T*>(data[entry][n])[at]);
                op(values, known);
                for (int n = 0; n < N; ++n) {
                    if (op.writes(n)) static_cast<T*>(data[entry][n])[at] = cast<T>(values[n]);
                }
            }
        }
    }
};

// An operation that knows nothing of entries.
struct EveryEntry {
    DIOPI_HD bool skips() const { return false; }
};

// An entry that does not fit, e.g. a parameter whose gradient lies in another order: copied to memory that does, and back.
template <class Op>
void do_alone(Context ctx, const Op& op, const TensorView (&views)[Op::kTensors]) {
    constexpr int N = Op::kTensors;
    TensorView dense[N];
    for (int n = 0; n < N; ++n) {
        require(views[n].same_sizes(views[0]), "the tensors of one entry differ in shape");
        dense[n] = contiguous_as(ctx, views[n], CommonFloat(views).dtype);
    }
    dispatch<Float>(dense[0].dtype, [&](auto type) {
        ListTask<typename decltype(type)::type, Op> task(op);
        task.add(ListEntry<N>(dense));
        for_each(ctx, task.count(), task);
    });
    for (int n = 0; n < N; ++n) {
        if (op.writes(n) && dense[n].data != views[n].data) copy_elements(ctx, views[n], dense[n]);
    }
}

// Does op to lists, by a launch for each dtype: tensors(k, views) gives an entry's, start(op, place, k) puts what the
// operation knows of it.
template <class Op, class Tensors, class Start>
void for_each_entry(Context ctx, int64_t count, const Op& op, Tensors&& tensors, Start&& start) {
    constexpr int N = Op::kTensors;
    TensorView views[N];
    bool done[5] = {};
    const auto kind = [](diopiDtype_t dtype) {
        return dtype == diopi_dtype_float32    ? 0
               : dtype == diopi_dtype_bfloat16 ? 1
               : dtype == diopi_dtype_float16  ? 2
               : dtype == diopi_dtype_float64  ? 3
                                               : 4;
    };
    for (int64_t k = 0; k < count; ++k) {
        tensors(k, views);
        const int of = ListEntry<N>::fits(views) ? kind(views[0].dtype) : 4;
        if (of == 4) {
            Op own = op;
            start(own, 0, k);
            do_alone(ctx, own, views);
            continue;
        }
        if (done[of]) continue;
        done[of] = true;
        dispatch<Float>(views[0].dtype, [&](auto type) {
            using T = typename decltype(type)::type;
            const diopiDtype_t dtype = views[0].dtype;
            ListTask<T, Op> task(op);
            for (int64_t each = k; each < count; ++each) {
                tensors(each, views);
                if (views[0].dtype != dtype || views[0].numel == 0 || !ListEntry<N>::fits(views)) continue;
                start(task.op, task.entries, each);
                task.add(ListEntry<N>(views));
                if (task.entries == kMostEntries) {
                    for_each(ctx, task.count(), task);
                    task.entries = 0;
                }
            }
            if (task.entries != 0) for_each(ctx, task.count(), task);
        });
    }
}

}  // namespace diopi::kernels
