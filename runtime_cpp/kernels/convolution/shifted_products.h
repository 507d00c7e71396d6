// Sums of shifted planes, and products of planes with shifted ones: convolutions of spread planes and the gradients of
// their filters, without a matrix of windows. What is summed up stays in a host's registers.
#pragma once

#include <cstdint>

namespace diopi::kernels {

// Of the registers: as many filters at once, times so many vectors of neighbouring results.
#if defined(__AVX512F__)
constexpr int64_t kVectorBytes = 64, kFiltersAtOnce = 8, kVectorsAtOnce = 3;
#elif defined(__AVX__)
constexpr int64_t kVectorBytes = 32, kFiltersAtOnce = 4, kVectorsAtOnce = 3;
#else
constexpr int64_t kVectorBytes = 16, kFiltersAtOnce = 4, kVectorsAtOnce = 3;
#endif

template <class T>
constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));

// Neighbouring elements in a register; `Stored` ones lie anywhere.
template <class T>
struct Vector {
    typedef T Loaded __attribute__((vector_size(kVectorBytes)));
    typedef T Stored __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));

    static Loaded at(const T* place) { return *reinterpret_cast<const Stored*>(place); }
    // In a register from then on: g++ would read the place again with each use, which takes longer than the products.
    static Loaded kept(const T* place) { return *reinterpret_cast<const volatile Stored*>(place); }
    static void store(T* place, Loaded value) { *reinterpret_cast<Stored*>(place) = value; }
};

// A window has no more taps than that, and a line of results that are summed up at once no more elements.
constexpr int64_t kMostTaps = 49;
constexpr int64_t kMostLine = 512;

// The taps of a window that take part, by their distance in spread planes and their place in a filter.
struct ShiftedTaps {
    int32_t count = 0;
    int32_t shifts[kMostTaps];
    int32_t places[kMostTaps];
};

// Filters in the order in which sums take them: [groups, tiles of filters, summed channels, taps, kFiltersAtOnce], zero
// behind the last filter. One tile per index.
template <class T>
struct PackFilters {
    const T* weight;
    T* packed;
    int64_t tiles, filters, channels;  // of a group
    int64_t group_stride, filter_stride, channel_stride;
    ShiftedTaps taps;

    void operator()(int64_t index) const {
        const int64_t group = index / tiles, first = index % tiles * kFiltersAtOnce;
        T* to = packed + index * channels * taps.count * kFiltersAtOnce;
        for (int64_t c = 0; c < channels; ++c) {
            const T* from = weight + group * group_stride + first * filter_stride + c * channel_stride;
            for (int32_t t = 0; t < taps.count; ++t, to += kFiltersAtOnce) {
                for (int64_t f = 0; f < kFiltersAtOnce; ++f)
                    to[f] = first + f < filters ? from[f * filter_stride + taps.places[t]] : T(0);
            }
        }
    }
};

// out[image, filter, y, x] = the sum over channels and taps of filter[tap] * plane[y * pitch + x + shift]. An index is
// some lines of one image and one tile of filters.
template <class T>
struct ShiftedSums {
    const T* planes;  // [images, groups, channels, planes of a channel]
    const T* packed;
    T* out;
    int64_t groups, tiles, filters, channels;  // of a group
    int64_t channel_size, pitch, first;        // of the planes: where the first tap of the first window is
    int64_t image_stride, filter_stride, row_stride, column_stride;  // of out, which begins with the first result
    int64_t rows, columns, block_rows, block_columns;
    bool adds;
    ShiftedTaps taps;

    int64_t indices(int64_t images) const { return images * groups * tiles * row_blocks() * column_blocks(); }
    int64_t row_blocks() const { return (rows + block_rows - 1) / block_rows; }
    int64_t column_blocks() const { return (columns + block_columns - 1) / block_columns; }

    void operator()(int64_t index) const {
        const int64_t blocks = row_blocks() * column_blocks(), tile = index / blocks % tiles;
        const int64_t group_of_image = index / blocks / tiles, group = group_of_image % groups;
        const int64_t y = index % blocks / column_blocks() * block_rows;
        const int64_t x = index % blocks % column_blocks() * block_columns;
        const int64_t height = rows - y < block_rows ? rows - y : block_rows;
        const int64_t width = columns - x < block_columns ? columns - x : block_columns;
        const T* from = planes + group_of_image * channels * channel_size + first + y * pitch + x;
        const T* weights = packed + (group * tiles + tile) * channels * taps.count * kFiltersAtOnce;
        T sums[kFiltersAtOnce][kMostLine + kVectorsAtOnce * kLanes<T>];
        const int64_t count = (height - 1) * pitch + width;
        int64_t q = 0;
        for (; q + (kVectorsAtOnce - 1) * kLanes<T> < count; q += kVectorsAtOnce * kLanes<T>)
            sum<kVectorsAtOnce>(sums, q, from, weights);
        for (; q < count; q += kLanes<T>) sum<1>(sums, q, from, weights);
        const int64_t first_filter = tile * kFiltersAtOnce, rest = filters - first_filter;
        T* to = out + group_of_image / groups * image_stride + (group * filters + first_filter) * filter_stride +
                y * row_stride + x * column_stride;
        for (int64_t f = 0; f < (rest < kFiltersAtOnce ? rest : kFiltersAtOnce); ++f) {
            for (int64_t row = 0; row < height; ++row)
                store(to + f * filter_stride + row * row_stride, &sums[f][row * pitch], width);
        }
    }

    template <int64_t vectors>
    void sum(T (&sums)[kFiltersAtOnce][kMostLine + kVectorsAtOnce * kLanes<T>], int64_t q, const T* from,
             const T* weights) const {
        typename Vector<T>::Loaded kept[kFiltersAtOnce][vectors] = {};
        from += q;
        for (int64_t c = 0; c < channels; ++c, from += channel_size) {
            for (int32_t t = 0; t < taps.count; ++t, weights += kFiltersAtOnce) {
                typename Vector<T>::Loaded seen[vectors];
                for (int64_t v = 0; v < vectors; ++v) seen[v] = Vector<T>::at(from + taps.shifts[t] + v * kLanes<T>);
                for (int64_t f = 0; f < kFiltersAtOnce; ++f) {
                    for (int64_t v = 0; v < vectors; ++v) kept[f][v] += weights[f] * seen[v];
                }
            }
        }
        for (int64_t f = 0; f < kFiltersAtOnce; ++f) {
            for (int64_t v = 0; v < vectors; ++v) Vector<T>::store(&sums[f][q + v * kLanes<T>], kept[f][v]);
        }
    }

    void store(T* to, const T* from, int64_t width) const {
        if (column_stride != 1) {
            for (int64_t x = 0; x < width; ++x)
                to[x * column_stride] = adds ? to[x * column_stride] + from[x] : from[x];
        } else if (adds) {
            for (int64_t x = 0; x < width; ++x) to[x] += from[x];
        } else {
            for (int64_t x = 0; x < width; ++x) to[x] = from[x];
        }
    }
};

// grad_weight[filter, channel, tap] = the sum over images and the elements of a plane of grad[q] * plane[q + shift]. An
// index is one tile of filters and up to kRowsAtOnce pairs of a channel and a tap.
template <class T>
struct ShiftedDots {
    static constexpr int64_t kRowsAtOnce = 9, kRowsInRegisters = 3;
    static_assert(kRowsAtOnce % kRowsInRegisters == 0, "what is summed up beside the rows has a place");
    static constexpr int64_t kLength = 1152;  // of what is summed up in registers: the planes stay in the nearest cache

    const T* planes;  // [images, groups, channels]
    const T* grads;  // [images, groups, tiles * kFiltersAtOnce], zero between the lines
    T* grad_weight;  // [groups, filters, channels, taps]
    int64_t images, groups, tiles, filters, channels;  // of a group
    int64_t plane_size, grad_size;
    bool adds;
    ShiftedTaps taps;

    int64_t blocks() const { return (channels * taps.count + kRowsAtOnce - 1) / kRowsAtOnce; }
    int64_t indices() const { return groups * tiles * blocks(); }

    using Lanes = typename Vector<T>::Loaded;
    using Totals = Lanes[kRowsAtOnce][kFiltersAtOnce];

    void operator()(int64_t index) const {
        const int64_t group = index / blocks() / tiles, tile = index / blocks() % tiles;
        const int64_t first = index % blocks() * kRowsAtOnce, all = channels * taps.count;
        const int64_t rows = all - first < kRowsAtOnce ? all - first : kRowsAtOnce;
        int64_t shifts[kRowsAtOnce];  // those behind the last row fill the registers up
        for (int64_t row = 0; row < kRowsAtOnce; ++row) {
            const int64_t pair = first + (row < rows ? row : 0), channel = pair / taps.count;
            shifts[row] = channel * plane_size + taps.shifts[pair - channel * taps.count];
        }
        Totals totals = {};
        const int64_t step = grad_size < kLength ? kLength / grad_size : 1;
        for (int64_t image = 0; image < images; image += step) {
            const int64_t end = image + step < images ? image + step : images;
            for (int64_t q = 0; q < grad_size; q += kLength) {
                const int64_t length = grad_size - q < kLength ? grad_size - q : kLength;
                add_block(totals, group, tile, rows, shifts, image, end, q, length);
            }
        }
        store(totals, group, tile, first, rows);
    }

    void add_block(Totals& totals, int64_t group, int64_t tile, int64_t rows, const int64_t* shifts, int64_t image,
                   int64_t end, int64_t q, int64_t length) const {
        const int64_t image_planes = groups * channels * plane_size;
        const int64_t image_grads = groups * tiles * kFiltersAtOnce * grad_size;
        const T* grad = grads + image * image_grads + (group * tiles + tile) * kFiltersAtOnce * grad_size + q;
        const T* plane = planes + image * image_planes + group * channels * plane_size + q;
        for (int64_t row = 0; row < rows; row += kRowsInRegisters) {
            const T* const seen[kRowsInRegisters] = {plane + shifts[row], plane + shifts[row + 1],
                                                     plane + shifts[row + 2]};
            dots(totals, row, grad, seen, end - image, image_grads, image_planes, length);
        }
    }

    void dots(Totals& totals, int64_t row, const T* grad, const T* const (&seen)[kRowsInRegisters], int64_t count,
              int64_t image_grads, int64_t image_planes, int64_t length) const {
        Lanes kept[kFiltersAtOnce][kRowsInRegisters] = {};
        for (int64_t image = 0; image < count; ++image) {
            for (int64_t q = 0; q < length; q += kLanes<T>) {
                Lanes values[kRowsInRegisters];
                for (int64_t r = 0; r < kRowsInRegisters; ++r)
                    values[r] = Vector<T>::at(seen[r] + image * image_planes + q);
                for (int64_t f = 0; f < kFiltersAtOnce; ++f) {
                    const Lanes of_filter = Vector<T>::kept(grad + image * image_grads + f * grad_size + q);
                    for (int64_t r = 0; r < kRowsInRegisters; ++r) kept[f][r] += of_filter * values[r];
                }
            }
        }
        for (int64_t f = 0; f < kFiltersAtOnce; ++f) {
            for (int64_t r = 0; r < kRowsInRegisters; ++r) totals[row + r][f] += kept[f][r];
        }
    }

    void store(const Totals& totals, int64_t group, int64_t tile, int64_t first, int64_t rows) const {
        const int64_t all = channels * taps.count, rest = filters - tile * kFiltersAtOnce;
        for (int64_t f = 0; f < (rest < kFiltersAtOnce ? rest : kFiltersAtOnce); ++f) {
            T* to = grad_weight + (group * filters + tile * kFiltersAtOnce + f) * all + first;
            for (int64_t r = 0; r < rows; ++r) {
                const T sum = sum_of(totals[r][f]);
                to[r] = adds ? to[r] + sum : sum;
            }
        }
    }

    static T sum_of(const Lanes& lanes) {
        T left[kLanes<T>];
        Vector<T>::store(left, lanes);
        return sum_of<kLanes<T>>(left);
    }

    template <int64_t count>
    static T sum_of(T* left) {
        if constexpr (count > 1) {
            for (int64_t i = 0; i < count / 2; ++i) left[i] += left[i + count / 2];
            return sum_of<count / 2>(left);
        }
        return left[0];
    }
};

}  // namespace diopi::kernels
