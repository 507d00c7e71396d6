// Attention of float32 on tensor cores, without a matrix of scores in memory (Dao, "FlashAttention-2", 2023). Unless
// the framework allows to round them, each factor is the sum of two that tensor cores take whole, and three products
// have float32's digits. The same bits in every run: one block writes a row, and none adds to what another wrote.
#include "float_attention.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "core/error.h"
#include "launch/precision.h"
#include "math/philox.h"

namespace diopi::launch {
namespace {

constexpr int kWarp = 32, kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kRows = 16 * kWarps;  // of a block's own tile: 16 for each warp
constexpr int kMostChannels = 128;
constexpr int kWords = kernels::RandomBits::kWords;  // of a draw: so many neighbours share it
constexpr float kLog2E = 1.44269504f;

template <int n, class Body>
__device__ void each(Body&& body) {
#pragma unroll
    for (int i = 0; i < n; ++i) body(i);
}

struct Rows {
    float* data;
    AttentionStrides strides;

    __device__ float* of(int64_t sequence, int64_t head) const {
        return data + sequence * strides.sequence + head * strides.head;
    }
};

// What the backward step keeps of a query: its weights are 2^(score - log_sum) * share, and two numbers are taken off
// the gradients of weights, of which the second is far smaller than the first.
struct alignas(16) Normalizer {
    float log_sum, share, mean, rest;
};

// Of this thread's four weights of two queries and two keys: a row has the keys of a query, or the queries of a key.
template <bool kOfKeys>
__device__ int query_of(int e) {
    return kOfKeys ? e % 2 : e / 2;
}
template <bool kOfKeys>
__device__ int key_of(int e) {
    return query_of<!kOfKeys>(e);
}

struct Problem {
    Rows rows[kAttentionParts];
    int heads, shared, queries, keys, channels;
    float scale;
    bool causal;
    float kept;  // what dropout multiplies a weight by that it keeps
    uint32_t dropped;  // of 2^32 words so many drop a weight
    const uint64_t* stream;  // its seed and offset; null: nothing is dropped
    float* log_sums;
    Normalizer* normalizers;

    __device__ int lag() const { return keys - queries; }  // query i stands at key i + lag
    __device__ float exponent() const { return scale * kLog2E; }  // of 2, for a product of query and key

    // Calls body(element, keeps) for a thread's four weights, from an even query and key on. They are dropped as the
    // portable kernels do, where neighbours share a draw: four keys of a query, of which this thread has two and the
    // next one two.
    template <bool kOfKeys, class Body>
    __device__ void drop(int64_t matrix, int query, int key, Body&& body) const {
        const kernels::RandomStream draws{stream[0], stream[1]};
        const int64_t place = (matrix * queries + query) * keys + key;
        if (keys % kWords == 0) {
            // Of both threads, whether this one has the last two keys: it draws for the second query.
            const bool later = key % kWords != 0;
            const kernels::RandomBits bits = draws.draw((place + (later ? keys : 0)) / kWords);
            const unsigned long long other = bits.half(later ? 0 : 1);
            const uint64_t theirs = __shfl_xor_sync(0xffffffffu, other, kOfKeys ? 4 : 1);
            const uint64_t words[2] = {later ? theirs : bits.first, later ? bits.second : theirs};
            each<4>([&](int e) {
                body(e, static_cast<uint32_t>(words[query_of<kOfKeys>(e)] >> 32 * key_of<kOfKeys>(e)) >= dropped);
            });
        } else {
            each<4>([&](int e) {
                const int64_t at = place + query_of<kOfKeys>(e) * keys + key_of<kOfKeys>(e);
                const auto word = static_cast<int>(at % kWords);
                body(e, draws.draw(at / kWords).word(word) >= dropped);
            });
        }
    }
};

// This thread's place in a warp's tiles of 16 x 8 and 8 x 8, and the first of its two rows in a block's tile.
struct Lane {
    int row, column, place;

    __device__ Lane()
        : row(threadIdx.x % kWarp / 4),
          column(threadIdx.x % 4),
          place(threadIdx.x / kWarp * 16 + 2 * row) {}
};

// Processors before 8.0 have neither these products nor the loads below: has_float_attention() says so.
__device__ void multiply_parts(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// How a factor becomes two parts, of which tensor cores ignore the last 13 bits: rounded, without a second part; the
// nearest and the rest, in which NaN stays; or cut off, which costs less and leaves an error of one sign.
enum class Split { kRounded, kNearest, kCut };

template <bool kRounds, Split exact>
constexpr Split kSplit = kRounds ? Split::kRounded : exact;

template <int n>
struct Factors {
    uint32_t high[n], low[n];

    template <Split split>
    __device__ void set(int i, float value) {
        if constexpr (split == Split::kRounded) {
#if __CUDA_ARCH__ >= 800
            asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high[i]) : "f"(value));
#endif
        } else {
            high[i] = (__float_as_uint(value) + (split == Split::kNearest ? 0x1000u : 0u)) & 0xffffe000u;
            low[i] = __float_as_uint(value - __uint_as_float(high[i]));
        }
    }
};

// sums += a b. The parts' products come in one order for a product and for its transpose: both have the same bits.
template <bool kRounds, bool kTransposed>
__device__ void multiply(float (&sums)[4], const Factors<4>& a, const Factors<2>& b) {
    if constexpr (!kRounds) {
        if constexpr (kTransposed) multiply_parts(sums, a.high, b.low);
        multiply_parts(sums, a.low, b.high);
        if constexpr (!kTransposed) multiply_parts(sums, a.high, b.low);
    }
    multiply_parts(sums, a.high, b.high);
}

// Tiles lie in shared memory, a row of channels behind the other.
template <int kChannels>
constexpr int kPitch = kChannels + 4;  // the rows that a warp reads at once begin in other banks

// Groups of loads from the device's memory into tiles.
__device__ void load_four(float* to, const float* from, bool exists) {
#if __CUDA_ARCH__ >= 800
    const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(exists ? 16 : 0));
#endif
}
__device__ void end_loads() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
// Until no more than `left` groups are on their way, for all threads.
template <int left>
__device__ void await_loads() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
    __syncthreads();
}

// A tile of rows from `first` on; zeros where there are none.
template <int kChannels, int kCount>
__device__ void load_tile(float* tile, const float* rows, int64_t stride, int first, int count, int channels) {
    for (int i = threadIdx.x; i < kCount * kChannels / 4; i += kThreads) {
        const int row = i / (kChannels / 4), channel = i % (kChannels / 4) * 4;
        const bool exists = first + row < count && channel < channels;
        load_four(tile + row * kPitch<kChannels> + channel, exists ? rows + (first + row) * stride + channel : rows,
                  exists);
    }
}

template <int n>
using Sums = float[n][4];  // of 16 rows and 8 n columns: of rows 2r and 2r + 1 the columns 2c and 2c + 1 of each eight

// sums = rows columns^T, of a warp's rows.
template <bool kRounds, bool kTransposed, int kChannels, int n>
__device__ void pair(Sums<n>& sums, const float* rows, const float* columns) {
    const Lane lane;
    each<n>([&](int j) { sums[j][0] = sums[j][1] = sums[j][2] = sums[j][3] = 0; });
    const float* const row = rows + lane.place * kPitch<kChannels> + lane.column;
    const float* const column = columns + lane.row * kPitch<kChannels> + lane.column;
#pragma unroll
    for (int c = 0; c < kChannels; c += 8) {
        Factors<4> a;
        each<4>(
            [&](int i) { a.set<kSplit<kRounds, Split::kNearest>>(i, row[i % 2 * kPitch<kChannels> + c + i / 2 * 4]); });
        each<n>([&](int j) {
            Factors<2> b;
            each<2>([&](int i) {
                b.set<kSplit<kRounds, Split::kNearest>>(i, column[j * 8 * kPitch<kChannels> + c + i * 4]);
            });
            multiply<kRounds, kTransposed>(sums[j], a, b);
        });
    }
}

// sums += weights rows, of a warp's weights.
template <bool kRounds, int kChannels, int n>
__device__ void mix(Sums<kChannels / 8>& sums, const Sums<n>& weights, const float* rows) {
    const Lane lane;
    const float* const row = rows + 2 * lane.column * kPitch<kChannels> + lane.row;
    each<n>([&](int j) {
        Factors<4> a;
        each<4>([&](int i) { a.set<kSplit<kRounds, Split::kNearest>>(i, weights[j][i % 2 * 2 + i / 2]); });
        each<kChannels / 8>([&](int c) {
            Factors<2> b;
            each<2>(
                [&](int i) { b.set<kSplit<kRounds, Split::kCut>>(i, row[(j * 8 + i) * kPitch<kChannels> + c * 8]); });
            multiply<kRounds, false>(sums[c], a, b);
        });
    });
}

// Of the four threads that share two rows.
template <class Join>
__device__ float of_row(float value, Join&& join) {
    value = join(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return join(value, __shfl_xor_sync(0xffffffffu, value, 2));
}
__device__ float sum_of_row(float value) {
    return of_row(value, [](float a, float b) { return a + b; });
}

// value(r, c, e): of row r of this thread's two, element e of the c-th sums.
template <int kChannels, class Value>
__device__ void store_rows(const Rows& to, float* rows, int first, int count, int channels, Value&& value) {
    const Lane lane;
    each<2>([&](int r) {
        const int row = first + lane.place + r;
        if (row >= count) return;
        each<kChannels / 8>([&](int c) {
            const int channel = c * 8 + 2 * lane.column;
            if (channel >= channels) return;
            *reinterpret_cast<float2*>(rows + row * to.strides.token + channel) =
                make_float2(value(r, c, 2 * r), value(r, c, 2 * r + 1));
        });
    });
}

template <bool kRounds, int kChannels, int kColumns>
__global__ void __launch_bounds__(kThreads) attend_forward(const Problem p) {
    extern __shared__ float shared[];
    float* const q_tile = shared;
    float* const k_tile = q_tile + kRows * kPitch<kChannels>;
    float* const v_tile = k_tile + kColumns * kPitch<kChannels>;
    const int64_t matrix = blockIdx.x, sequence = matrix / p.heads, head = matrix % p.heads;
    const int64_t shared_head = head / (p.heads / p.shared);
    const int first = (gridDim.y - 1 - blockIdx.y) * kRows;  // those that see most come first
    const Lane lane;
    const int query = first + lane.place;
    const float* const k_rows = p.rows[kKeys].of(sequence, shared_head);
    const float* const v_rows = p.rows[kValues].of(sequence, shared_head);
    const auto load = [&](float* tile, AttentionPart part, const float* rows, int key) {
        if (key < p.keys)
            load_tile<kChannels, kColumns>(tile, rows, p.rows[part].strides.token, key, p.keys, p.channels);
        end_loads();
    };
    load_tile<kChannels, kRows>(q_tile, p.rows[kQueries].of(sequence, head), p.rows[kQueries].strides.token, first,
                                p.queries, p.channels);
    load(k_tile, kKeys, k_rows, 0);
    load(v_tile, kValues, v_rows, 0);
    const int seen = p.causal ? min(p.keys, first + kRows + p.lag()) : p.keys;
    Sums<kChannels / 8> mixed = {};
    float greatest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
    for (int key = 0; key < seen; key += kColumns) {
        Sums<kColumns / 8> scores;
        await_loads<1>();
        pair<kRounds, false, kChannels>(scores, q_tile, k_tile);
        __syncthreads();
        load(k_tile, kKeys, k_rows, key + kColumns);
        if (key + kColumns > p.keys || (p.causal && key + kColumns > first + p.lag())) {
            each<kColumns / 8>([&](int j) {
                each<4>([&](int e) {
                    const int at = key + j * 8 + 2 * lane.column + e % 2;
                    if (at >= p.keys || (p.causal && at > query + e / 2 + p.lag())) scores[j][e] = -INFINITY;
                });
            });
        }
        each<2>([&](int r) {
            float now = greatest[r];
            each<kColumns / 8>([&](int j) { now = fmaxf(now, fmaxf(scores[j][2 * r], scores[j][2 * r + 1])); });
            now = of_row(now, [](float a, float b) { return fmaxf(a, b); });
            const float offset = now == -INFINITY ? 0 : now * p.exponent();
            const float shrink = exp2f(greatest[r] * p.exponent() - offset);
            greatest[r] = now;
            total[r] *= shrink;
            each<kColumns / 8>([&](int j) {
                each<2>([&](int k) {
                    float& score = scores[j][2 * r + k];
                    score = exp2f(fmaf(score, p.exponent(), -offset));
                    total[r] += score;
                });
            });
            each<kChannels / 8>([&](int c) {
                mixed[c][2 * r] *= shrink;
                mixed[c][2 * r + 1] *= shrink;
            });
        });
        if (p.stream != nullptr) {
            each<kColumns / 8>([&](int j) {
                p.drop<false>(matrix, query, key + j * 8 + 2 * lane.column, [&](int e, bool keeps) {
                    if (!keeps) scores[j][e] = 0;
                });
            });
        }
        await_loads<1>();
        mix<kRounds, kChannels, kColumns / 8>(mixed, scores, v_tile);
        __syncthreads();
        load(v_tile, kValues, v_rows, key + kColumns);
    }
    float share[2];
    each<2>([&](int r) {
        total[r] = sum_of_row(total[r]);
        share[r] = p.kept / total[r];
        if (p.log_sums != nullptr && lane.column == 0 && query + r < p.queries)
            p.log_sums[matrix * p.queries + query + r] = greatest[r] * p.scale + logf(total[r]);
    });
    store_rows<kChannels>(p.rows[kAttended], p.rows[kAttended].of(sequence, head), first, p.queries, p.channels,
                          [&](int r, int c, int e) { return mixed[c][e] * share[r]; });
}

// The gradients of queries, or of keys and values: a block has a tile of its own rows and goes through the far ones
// that see them or are seen. Those of queries come first, and leave a normalizer for each. Where one weight is nearly
// one, the log_sum of the forward step and the mean that its result gives would leave no digits of the differences:
// the slope of that weight takes the mean's place, and the sums of weights and of slopes over all keys correct both.
template <bool kRounds, bool kOfKeys, int kChannels, int kColumns>
__global__ void __launch_bounds__(kThreads) attend_backward(const Problem p) {
    constexpr int kTile = kColumns * kPitch<kChannels>, kStages = 2;
    constexpr AttentionPart kOwn = kOfKeys ? kKeys : kQueries, kOwnOther = kOfKeys ? kValues : kGradAttended;
    constexpr AttentionPart kFar = kOfKeys ? kQueries : kKeys, kFarOther = kOfKeys ? kGradAttended : kValues;
    extern __shared__ float shared[];
    float* const own = shared;
    float* const own_other = own + kRows * kPitch<kChannels>;
    float* const far = own_other + kRows * kPitch<kChannels>;  // kStages times both
    auto* const normalizers = reinterpret_cast<Normalizer*>(far + 2 * kStages * kTile);
    const int heads = kOfKeys ? p.shared : p.heads, times = kOfKeys ? p.heads / p.shared : 1;
    const int64_t own_matrix = blockIdx.x, sequence = own_matrix / heads, head = own_matrix % heads;
    const int tile = kOfKeys ? blockIdx.y : gridDim.y - 1 - blockIdx.y, first = tile * kRows;
    const int count = kOfKeys ? p.keys : p.queries, far_count = kOfKeys ? p.queries : p.keys;
    const auto load_own = [&](float* to, AttentionPart part) {
        load_tile<kChannels, kRows>(to, p.rows[part].of(sequence, head), p.rows[part].strides.token, first, count,
                                    p.channels);
    };
    const int64_t far_head = kOfKeys ? head * times : head / (p.heads / p.shared);
    int begin = 0, end = far_count;  // of the others that have scores with the tile
    if (p.causal && kOfKeys) begin = max(0, first - p.lag()) / kColumns * kColumns;
    if (p.causal && !kOfKeys) end = min(end, first + kRows + p.lag());
    const int steps = max(0, (end - begin + kColumns - 1) / kColumns), all = steps * times;
    const auto load_far = [&](int step) {
        if (step < all) {
            const int at = begin + step % steps * kColumns;
            const int64_t of = far_head + step / steps;
            float* const to = far + step % kStages * 2 * kTile;
            const auto load = [&](float* rows, AttentionPart part) {
                load_tile<kChannels, kColumns>(rows, p.rows[part].of(sequence, of), p.rows[part].strides.token, at,
                                               far_count, p.channels);
            };
            load(to, kFar);
            load(to + kTile, kFarOther);
            if constexpr (kOfKeys) {
                for (int i = threadIdx.x; i < kColumns; i += kThreads) {
                    const Normalizer* const from = p.normalizers + (sequence * p.heads + of) * p.queries;
                    normalizers[step % kStages * kColumns + i] = at + i < p.queries ? from[at + i] : Normalizer{};
                }
            }
        }
        end_loads();
    };
    load_own(own, kOwn);
    load_own(own_other, kOwnOther);
    load_far(0);
    const Lane lane;
    Normalizer normal[2] = {};  // of this thread's queries; share and rest are sums until all keys have come
    if constexpr (!kOfKeys) {
        await_loads<0>();
        const float* const out = p.rows[kAttended].of(sequence, head);
        each<2>([&](int r) {
            const int query = first + lane.place + r;
            float sum = 0;
            if (query < p.queries) {
                const float* const row = out + query * p.rows[kAttended].strides.token;
                for (int c = lane.column; c < p.channels; c += 4)
                    sum = fmaf(row[c], own_other[(lane.place + r) * kPitch<kChannels> + c], sum);
            }
            normal[r].mean = sum_of_row(sum);
            if (query < p.queries) normal[r].log_sum = p.log_sums[own_matrix * p.queries + query] * kLog2E;
        });
    }
    Sums<kChannels / 8> by_weight = {}, by_slope = {};
    for (int step = 0; step < all; ++step) {
        await_loads<0>();
        load_far(step + 1);
        const int at = begin + step % steps * kColumns;
        const int64_t matrix = kOfKeys ? sequence * p.heads + far_head + step / steps : own_matrix;
        const float* const columns = far + step % kStages * 2 * kTile;
        Sums<kColumns / 8> weights, slopes;
        pair<kRounds, kOfKeys, kChannels>(weights, own, columns);
        pair<kRounds, kOfKeys, kChannels>(slopes, own_other, columns + kTile);
        const bool cuts = (!kOfKeys && at + kColumns > p.keys) ||
                          (p.causal && (kOfKeys ? at + p.lag() < first + kRows : at + kColumns > first + p.lag()));
        const auto far_normal = [&](int j, int e) -> const Normalizer& {
            return normalizers[step % kStages * kColumns + j * 8 + 2 * lane.column + e % 2];
        };
        uint32_t dropped = 0;  // a bit for each of this thread's weights
        each<kColumns / 8>([&](int j) {
            const int column = j * 8 + 2 * lane.column;
            const int query = kOfKeys ? at + column : first + lane.place,
                      key = kOfKeys ? first + lane.place : at + column;
            if (p.stream != nullptr)
                p.drop<kOfKeys>(matrix, query, key, [&](int e, bool keeps) {
                    if (!keeps) dropped |= 1u << (4 * j + e);
                });
            each<4>([&](int e) {
                const int of_query = query_of<kOfKeys>(e), of_key = key_of<kOfKeys>(e);
                const float log = kOfKeys ? far_normal(j, e).log_sum : normal[e / 2].log_sum;
                weights[j][e] = exp2f(fmaf(weights[j][e], p.exponent(), -log));
                slopes[j][e] = dropped >> (4 * j + e) & 1 ? 0 : slopes[j][e] * p.kept;
                if (cuts &&
                    ((!kOfKeys && key + of_key >= p.keys) || (p.causal && key + of_key > query + of_query + p.lag())))
                    weights[j][e] = 0;
            });
        });
        if constexpr (!kOfKeys) {
            each<2>([&](int r) {
                float heaviest = -INFINITY;  // the slope of the weight that has more than half
                each<kColumns / 8>([&](int j) {
                    each<2>([&](int k) {
                        const int e = 2 * r + k;
                        heaviest = fmaxf(heaviest, weights[j][e] > .5f ? slopes[j][e] : -INFINITY);
                    });
                });
                heaviest = of_row(heaviest, [](float a, float b) { return fmaxf(a, b); });
                if (heaviest == -INFINITY) return;
                const float moved = normal[r].mean - heaviest;
                normal[r].mean = heaviest;
                normal[r].rest += moved * normal[r].share;
                each<kChannels / 8>([&](int c) {
                    by_slope[c][2 * r] += moved * by_weight[c][2 * r];
                    by_slope[c][2 * r + 1] += moved * by_weight[c][2 * r + 1];
                });
            });
        }
        each<kColumns / 8>([&](int j) {
            each<4>([&](int e) {
                float &weight = weights[j][e], &slope = slopes[j][e];
                if constexpr (kOfKeys) {
                    weight *= far_normal(j, e).share;
                    slope = weight * (slope - far_normal(j, e).mean - far_normal(j, e).rest);
                    if (dropped >> (4 * j + e) & 1) weight = 0;
                } else {
                    slope = weight * (slope - normal[e / 2].mean);
                    normal[e / 2].share += weight;
                    normal[e / 2].rest += slope;
                }
            });
        });
        mix<kRounds, kChannels, kColumns / 8>(by_weight, weights, kOfKeys ? columns + kTile : columns);
        mix<kRounds, kChannels, kColumns / 8>(by_slope, slopes, columns);
    }
    const auto store = [&](AttentionPart part, auto&& value) {
        store_rows<kChannels>(p.rows[part], p.rows[part].of(sequence, head), first, count, p.channels, value);
    };
    if constexpr (kOfKeys) {
        store(kGradKeys, [&](int, int c, int e) { return by_slope[c][e] * p.scale; });
        store(kGradValues, [&](int, int c, int e) { return by_weight[c][e] * p.kept; });
    } else {
        each<2>([&](int r) {
            normal[r].share = 1 / sum_of_row(normal[r].share);
            normal[r].rest = sum_of_row(normal[r].rest) * normal[r].share;
            const int query = first + lane.place + r;
            if (lane.column == 0 && query < p.queries) p.normalizers[own_matrix * p.queries + query] = normal[r];
        });
        store(kGradQueries, [&](int r, int c, int e) {
            return (by_slope[c][e] - normal[r].rest * by_weight[c][e]) * normal[r].share * p.scale;
        });
    }
}

// How many rows of keys, or of what a tile's gradients come from, are there at once: as leaves room for two blocks on a
// processor.
template <int kChannels>
struct Tiles {
    static constexpr int kSeen = kChannels > 64 ? 32 : 64, kFar = kSeen / 2;
    static constexpr int64_t kForwardBytes = (kRows + 2 * kSeen) * kPitch<kChannels> * 4;
    static constexpr int64_t kBackwardBytes =
        (2 * kRows + 4 * kFar) * kPitch<kChannels> * 4 + 2 * kFar * sizeof(Normalizer);
};

// Calls f(integral_constant) with the channels that tiles have.
template <class F>
auto by_channels(int64_t channels, F&& f) {
    if (channels <= 32) return f(std::integral_constant<int, 32>{});
    if (channels <= 64) return f(std::integral_constant<int, 64>{});
    return f(std::integral_constant<int, kMostChannels>{});
}

void start(void (*kernel)(Problem), int64_t matrices, int rows, int64_t bytes, cudaStream_t stream,
           const Problem& problem) {
    const auto checked = [](cudaError_t error) {
        kernels::require(error == cudaSuccess, "attention of float32: %s", cudaGetErrorString(error));
    };
    checked(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
    const dim3 grid(static_cast<unsigned>(matrices), static_cast<unsigned>((rows + kRows - 1) / kRows));
    kernel<<<grid, kThreads, bytes, stream>>>(problem);
    checked(cudaGetLastError());
}

template <bool kRounds, int kChannels>
void start_step(const LibraryAttention& of, cudaStream_t stream, const Problem& problem) {
    using T = Tiles<kChannels>;
    const int64_t matrices = of.sequences * of.heads, shared = of.sequences * of.shared_heads;
    if (of.step == AttentionStep::kForward)
        return start(attend_forward<kRounds, kChannels, T::kSeen>, matrices, problem.queries, T::kForwardBytes, stream,
                     problem);
    start(attend_backward<kRounds, false, kChannels, T::kFar>, matrices, problem.queries, T::kBackwardBytes, stream,
          problem);
    start(attend_backward<kRounds, true, kChannels, T::kFar>, shared, problem.keys, T::kBackwardBytes, stream, problem);
}

int attribute(cudaDeviceAttr which) {
    int device = 0, value = 0;
    const bool known =
        cudaGetDevice(&device) == cudaSuccess && cudaDeviceGetAttribute(&value, which, device) == cudaSuccess;
    return known ? value : 0;
}

}  // namespace

bool has_float_attention(const LibraryAttention& problem) {
    constexpr int64_t most_matrices = int64_t{1} << 30, most_tiles = 65535;
    const int64_t longest = std::max(problem.queries, problem.keys);
    if (problem.channels > kMostChannels || problem.sequences * problem.heads > most_matrices ||
        longest > most_tiles * kRows || attribute(cudaDevAttrComputeCapabilityMajor) < 8)
        return false;
    return by_channels(problem.channels, [](auto channels) {
        return Tiles<decltype(channels)::value>::kBackwardBytes <= attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    });
}

void attend_floats(cudaStream_t stream, const LibraryAttention& of, const AttentionRows& rows,
                   const Workspace& workspace) {
    Problem problem{};
    for (int n = 0; n < kAttentionParts; ++n) problem.rows[n] = {static_cast<float*>(rows.of[n]), of.strides[n]};
    problem.heads = static_cast<int>(of.heads);
    problem.shared = static_cast<int>(of.shared_heads);
    problem.queries = static_cast<int>(of.queries);
    problem.keys = static_cast<int>(of.keys);
    problem.channels = static_cast<int>(of.channels);
    problem.scale = static_cast<float>(of.scale);
    problem.causal = of.causal;
    problem.kept = static_cast<float>(1 / (1 - of.dropout));
    problem.dropped = static_cast<uint32_t>(std::min<uint64_t>(kernels::dropped_words(of.dropout), 0xffffffffu));
    if (of.dropout != 0) problem.stream = rows.seed + kStreamAt;
    problem.log_sums = rows.log_sums;
    if (of.step == AttentionStep::kBackward)
        problem.normalizers = static_cast<Normalizer*>(
            workspace(of.sequences * of.heads * of.queries * static_cast<int64_t>(sizeof(Normalizer))));
    by_channels(of.channels, [&](auto channels) {
        constexpr int kChannels = decltype(channels)::value;
        (may_round(diopi_products) ? start_step<true, kChannels> : start_step<false, kChannels>)(of, stream, problem);
    });
}

}  // namespace diopi::launch
