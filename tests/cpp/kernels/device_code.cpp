// Code for devices of many threads, run by a loop over its threads. Each line that it prints is a fault.
#include <cstdio>
#include <vector>

#include "core/team.h"
#include "elementwise/device_expression.h"

using namespace diopi::kernels;

namespace {

struct Mix {
    template <class C>
    static C apply(C a, C b, C constant) {
        return a * constant + b;
    }
};

void check_divisors() {
    for (int64_t by : {1, 2, 3, 5, 7, 48, 641, 65537, 1 << 30, INT32_MAX - 1, INT32_MAX}) {
        const FixedDivisor divisor(by);
        for (int64_t number :
             {int64_t{0}, int64_t{1}, by - 1, by, by / 2 * 3, by * 9 - 1, by * 64, int64_t{INT32_MAX}}) {
            if (number > INT32_MAX) continue;
            if (divisor.quotient(static_cast<uint32_t>(number)) != number / by) std::printf("%ld / %ld\n", number, by);
        }
    }
}

// Two inputs with these strides, `gap` elements behind an aligned address, beside what a plain loop gives.
template <class In, class Out>
void check_expression(const std::vector<int64_t>& sizes, const int64_t (&strides)[3][3], int gap) {
    Space<3> space;
    for (size_t d = 0; d < sizes.size(); ++d) space.append(sizes[d], {strides[0][d], strides[1][d], strides[2][d]});
    constexpr int64_t room = 4096;
    alignas(16) static In a[room], b[room];
    alignas(16) static Out out[room], expected[room];
    for (int64_t i = 0; i < room; ++i) {
        a[i] = cast<In>(static_cast<float>(i % 13));
        b[i] = cast<In>(static_cast<float>(i % 7));
        out[i] = expected[i] = Out(0.0f);
    }
    using Expression = TypedExpression<Mix, float, In, Out, Argument<true, 1>, Argument<true, 2>, Argument<false, 0>>;
    const Expression expression{{out + gap, a + gap, b + gap}, {2.0f, 0.0f}};
    if (launch_expression<In, Out>(nullptr, expression, space) != diopiSuccess) std::printf("not launched\n");
    for (int64_t i = 0; i < space.numel; ++i) {
        const Offsets<3> at = space.offsets(i);
        const float value = Mix::apply(cast<float>(a[gap + at[1]]), cast<float>(b[gap + at[2]]), 2.0f);
        expected[gap + at[0]] = cast<Out>(value);
    }
    for (int64_t i = 0; i < room; ++i) {
        const float found = cast<float>(out[i]), right = cast<float>(expected[i]);
        if (found != right)
            std::printf("element %ld of %ld with gap %d: %g, not %g\n", i, space.numel, gap, found, right);
    }
}

template <class In, class Out>
void check_layouts() {
    for (int gap : {0, 1, 8}) {
        for (int64_t count : {1, 3, 16, 1001}) {
            check_expression<In, Out>({count}, {{1}, {1}, {1}}, gap);
            check_expression<In, Out>({count}, {{1}, {1}, {0}}, gap);
            check_expression<In, Out>({count}, {{2}, {1}, {3}}, gap);
        }
        for (int64_t columns : {5, 64}) {
            check_expression<In, Out>({9, columns}, {{columns, 1}, {0, 1}, {1, 0}}, gap);
            check_expression<In, Out>({9, columns}, {{columns, 1}, {64, 1}, {1, 9}}, gap);
            check_expression<In, Out>({3, 4, columns}, {{4 * columns, columns, 1}, {columns, 0, 1}, {0, columns, 1}},
                                      gap);
        }
    }
}

struct Place {
    int64_t in_team;
    int64_t of_team;
    int64_t rank() const { return in_team; }
    int64_t size() const { return of_team; }
};

// Each element of each row falls to one thread of a team.
void check_stripes(int64_t threads, int64_t rows, int64_t count) {
    std::vector<int> seen(static_cast<size_t>(rows * count));
    for (int64_t rank = 0; rank < threads; ++rank) {
        const RowStripes<Stripe> mine = row_stripes(Place{rank, threads}, rows, count);
        for (int64_t row = mine.rows.first; row < mine.rows.end; row += mine.rows.step)
            each(mine.elements, [&](int64_t k) { ++seen[static_cast<size_t>(row * count + k)]; });
    }
    for (int times : seen) {
        if (times != 1)
            std::printf("an element of %ld x %ld falls to %d of %ld threads\n", rows, count, times, threads);
    }
}

// A space too large for 32 bits, in parts that fit: each position once.
void check_parts() {
    Space<1> space;
    space.append(3, {int64_t{1} << 31});
    space.append(5, {int64_t{1} << 29});
    int64_t seen = 0, offsets = 0;
    for_small_parts(space, Offsets<1>{}, [&](const Space<1>& part, const Offsets<1>& start) {
        for (int64_t i = 0; i < part.numel; ++i, ++seen)
            offsets += start[0] + SmallSpace<1>(part).offsets(static_cast<uint32_t>(i))[0];
        return diopiSuccess;
    });
    int64_t expected = 0;
    for (int64_t i = 0; i < space.numel; ++i) expected += space.offset(i);
    if (seen != space.numel || offsets != expected) std::printf("parts have %ld of %ld positions\n", seen, space.numel);
}

}  // namespace

int main() {
    check_divisors();
    check_layouts<float, float>();
    check_layouts<Half, Half>();
    check_layouts<double, bool>();
    check_layouts<BFloat16, float>();
    check_layouts<uint8_t, float>();
    check_parts();
    for (int64_t threads : {1, 2, 32, 512}) {
        for (int64_t count : {1, 2, 7, 31, 32, 33, 1000}) check_stripes(threads, 5, count);
    }
}
