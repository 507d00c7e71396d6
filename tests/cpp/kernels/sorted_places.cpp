// Places of sorted values beside a stable sort of the values, and running sums of long lines beside a plain loop. Each
// line that this prints is a fault.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <vector>

#include "reduction/scan.h"
#include "sorting/sorting.h"

using namespace diopi::kernels;

extern "C" diopiContext* test_context_create();

namespace {

// NaN of both signs and with other bits, zeros of both signs, infinities, the smallest and the greatest, and many ties.
template <class T>
std::unique_ptr<T[]> values_of(int64_t count) {
    std::unique_ptr<T[]> values(new T[static_cast<size_t>(count)]);
    for (int64_t i = 0; i < count; ++i) {
        const int64_t number = i * 7919 % 23;
        T& value = values[i];
        value = cast<T>(static_cast<double>(number - (std::is_signed_v<T> || is_float<T> ? 11 : 0)));
        if constexpr (is_float<T>) {
            using Number = std::numeric_limits<double>;
            const double odd[] = {Number::quiet_NaN(),
                                  -Number::quiet_NaN(),
                                  0.0,
                                  -0.0,
                                  Number::infinity(),
                                  -Number::infinity(),
                                  1e-40,
                                  -1e-40,
                                  6e-8,
                                  Number::signaling_NaN()};
            if (number < 10) value = cast<T>(odd[number]);
        } else if (number < 2) {
            value = number == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
        }
    }
    return values;
}

template <class T>
struct List {
    const T* values;
    T operator()(int64_t i) const { return values[i]; }
};

template <class T>
void check_places(Context ctx, int64_t lines, int64_t length, bool descending) {
    const std::unique_ptr<T[]> values = values_of<T>(lines * length);
    const SortedPlaces sorted = sorted_places(ctx, lines, length, List<T>{values.get()}, descending);
    std::vector<int64_t> expected(static_cast<size_t>(lines * length));
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int64_t>(i);
    for (auto line = expected.begin(); line != expected.end(); line += length) {
        std::stable_sort(line, line + length, [&](int64_t i, int64_t j) {
            return descending ? less(values[j], values[i]) : less(values[i], values[j]);
        });
    }
    for (size_t i = 0; i < expected.size(); ++i) {
        if (sorted[static_cast<int64_t>(i)] == expected[i]) continue;
        std::printf("%s: place %zu of %ld x %ld is %ld, not %ld\n", diopiDtypeName(dtype_of<T>), i, lines, length,
                    sorted[static_cast<int64_t>(i)], expected[i]);
        return;
    }
}

template <class... T>
void check_all_places(Context ctx, Types<T...>) {
    for (const bool descending : {false, true}) {
        for (const int64_t length : {1, 16, 17, 100, 3000}) {
            (check_places<T>(ctx, 1, length, descending), ...);
            (check_places<T>(ctx, 3, length, descending), ...);
        }
    }
}

void check_few_bits(Context ctx) {
    const std::vector<int64_t> values{5, 3, 5, 0, 7, 1, 3, 2, 5, 4, 6, 7, 0, 1, 2, 3, 4, 5};
    const auto count = static_cast<int64_t>(values.size());
    const SortedPlaces sorted = sorted_places(ctx, 1, count, List<int64_t>{values.data()}, false, 3);
    for (int64_t i = 1; i < count; ++i) {
        if (values[sorted[i - 1]] > values[sorted[i]]) std::printf("values of three bits are not in order\n");
    }
}

struct Numbers {
    using State = double;
    double* sums;
    int64_t lines, length;
    bool beside;

    int64_t start(int64_t line) const { return line; }
    double load(int64_t line, int64_t k) const { return static_cast<double>((line * length + k) % 17); }
    void store(int64_t line, int64_t k, double sum) const { sums[beside ? k * lines + line : line * length + k] = sum; }
};

void check_sums(Context ctx, int64_t lines, int64_t length, bool beside) {
    std::vector<double> sums(static_cast<size_t>(lines * length));
    const Numbers numbers{sums.data(), lines, length, beside};
    scan(ctx, lines, length, numbers, beside);
    for (int64_t line = 0; line < lines; ++line) {
        double sum = 0;
        for (int64_t k = 0; k < length; ++k) {
            sum += numbers.load(line, k);
            const double found = sums[static_cast<size_t>(beside ? k * lines + line : line * length + k)];
            if (found == sum) continue;
            std::printf("sum %ld of line %ld of %ld x %ld: %g, not %g\n", k, line, lines, length, found, sum);
            return;
        }
    }
}

}  // namespace

int main() {
    Context ctx = test_context_create();
    check_all_places(ctx, Any{});
    check_few_bits(ctx);
    for (const int64_t lines : {1, 3, 40}) {
        for (const int64_t length : {0, 1, 9, 64, 65, 1000, 4097, 10007}) {
            check_sums(ctx, lines, length, false);
            check_sums(ctx, lines, length, true);
        }
    }
    check_sums(ctx, 1, 2048 * 4100, false);
    return 0;
}
