// One scenario per conversion: what the vendor must see, what the caller must get back, what a failure leaves.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "fake_runtime.h"

extern "C" {
diopiError_t diopiAdd(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, diopiConstTensorHandle_t,
                      const diopiScalar_t*);
diopiError_t diopiAddInp(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, const diopiScalar_t*);
diopiError_t diopiAddInpScalar(diopiContextHandle_t, diopiTensorHandle_t, const diopiScalar_t*, const diopiScalar_t*);
diopiError_t diopiConvolution2d(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t,
                                diopiConstTensorHandle_t, diopiConstTensorHandle_t, diopiSize_t);
diopiError_t diopiCat(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t*, int64_t, int64_t);
diopiError_t diopiSplitWithSizes(diopiContextHandle_t, diopiTensorHandle_t*, int64_t, diopiConstTensorHandle_t,
                                 diopiSize_t, int64_t);
diopiError_t diopiMaskedSelect(diopiContextHandle_t, diopiTensorHandle_t*, diopiConstTensorHandle_t,
                               diopiConstTensorHandle_t);
diopiError_t diopiSgd(diopiContextHandle_t, diopiTensorHandle_t, diopiTensorHandle_t, diopiTensorHandle_t, double);
diopiError_t diopiArgmax(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, const int64_t*, bool);
diopiError_t diopiCastDtype(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t);
}

namespace {

using Calls = std::vector<std::string>;
using Values = std::vector<double>;
using fake::faults;
using fake::record;
using fake::Sizes;
using fake::tensor;
using fake::values;

constexpr diopiDtype_t f32 = diopi_dtype_float32;
constexpr diopiDtype_t f64 = diopi_dtype_float64;
constexpr diopiDtype_t i8 = diopi_dtype_int8;
constexpr diopiDtype_t i32 = diopi_dtype_int32;
constexpr diopiDtype_t i64 = diopi_dtype_int64;

#define EXPECT(condition)                                                              \
    do {                                                                               \
        if (!(condition)) {                                                            \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                \
            for (const auto& call : record.calls) std::printf("  %s\n", call.c_str()); \
            std::exit(1);                                                              \
        }                                                                              \
    } while (false)

diopiScalar_t integer(int64_t value) {
    diopiScalar_t scalar{};
    scalar.stype = diopi_dtype_int64;
    scalar.ival = value;
    return scalar;
}

const diopiScalar_t kOne = integer(1);
const diopiSize_t kNone{nullptr, 0};

diopiDtype_t seen(size_t argument) { return record.arguments.at(argument)->dtype; }

void suiting_tensors_pass_untouched() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {2, 3}), a = tensor(f32, {2, 3}), b = tensor(f32, {2, 3});
    record.arguments.reserve(8);
    record.calls.reserve(8);
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
    EXPECT(record.calls == Calls{"diopiAdd"} && ctx.temporaries.empty());
    EXPECT(record.arguments[0] == &out && record.arguments[1] == &a && record.arguments[2] == &b);
}

void suiting_tensors_allocate_nothing() {
    diopiContext ctx;
    diopiTensor x = tensor(f32, {2, 3, 4, 5}, {60, 1, 15, 3}), out = x;
    diopiTensor weight = tensor(f32, {3, 3, 2, 2});
    record.arguments.reserve(8);
    record.calls.reserve(8);
    record.calls.emplace_back("a string of the recorder's own, which may allocate");
    record.calls.clear();
    const long before = fake::allocations();
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &weight, nullptr, kNone) == diopiSuccess);
    const long recorded = 1;  // the name of the function, by the recorder
    EXPECT(fake::allocations() - before <= recorded && ctx.temporaries.empty());
}

void inputs_are_cast_and_outputs_cast_back() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
    // The output is not cast before the call: the function writes all of it.
    EXPECT((record.calls == Calls{"cast float64 float32", "cast float64 float32", "diopiAdd", "cast float32 float64"}));
    EXPECT(seen(0) == f32 && seen(1) == f32 && seen(2) == f32 && ctx.temporaries.size() == 3);
    EXPECT((values(out) == Values{2, 4, 6}) && (values(a) == Values{1, 2, 3}));
}

void each_tensor_decides_for_itself() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {3}), a = tensor(f32, {3}), b = tensor(i64, {3});
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
    EXPECT((record.calls == Calls{"cast int64 int32", "diopiAdd"}));
    EXPECT(record.arguments[0] == &out && record.arguments[1] == &a && seen(2) == i32);
}

void a_tensor_given_twice_is_converted_once() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {3}), a = tensor(f64, {3});
    EXPECT(diopiAdd(&ctx, &out, &a, &a, &kOne) == diopiSuccess);
    EXPECT((record.calls == Calls{"cast float64 float32", "diopiAdd"}) && record.arguments[1] == record.arguments[2]);
}

void an_output_that_is_an_input_stays_one() {
    diopiContext ctx;
    diopiTensor a = tensor(f64, {3}), b = tensor(f32, {3});
    EXPECT(diopiAdd(&ctx, &a, &a, &b, &kOne) == diopiSuccess);
    EXPECT(record.arguments[0] == record.arguments[1] && ctx.temporaries.size() == 1);
    EXPECT((record.calls == Calls{"cast float64 float32", "diopiAdd", "cast float32 float64"}));
    EXPECT((values(a) == Values{2, 4, 6}));
}

void two_handles_of_one_view_are_one_tensor() {
    diopiContext ctx;
    diopiTensor a = tensor(f64, {3}), same = a, b = tensor(f32, {3});
    EXPECT(diopiAdd(&ctx, &same, &a, &b, &kOne) == diopiSuccess);
    EXPECT(record.arguments[0] == record.arguments[1] && ctx.temporaries.size() == 1);
    EXPECT((values(a) == Values{2, 4, 6}));
}

void views_of_one_storage_that_differ_are_two_tensors() {
    diopiContext ctx;
    diopiTensor a = tensor(f64, {2, 2}), transposed = a, out = tensor(f32, {2, 2});
    transposed.strides = {1, 2};
    EXPECT(diopiAdd(&ctx, &out, &a, &transposed, &kOne) == diopiSuccess);
    EXPECT(record.arguments[1] != record.arguments[2] && (values(out) == Values{2, 5, 5, 8}));
}

void inout_is_converted_both_ways() {
    diopiContext ctx;
    diopiTensor a = tensor(i64, {3}), b = tensor(i64, {3});
    EXPECT(diopiAddInp(&ctx, &a, &b, &kOne) == diopiSuccess);
    EXPECT((record.calls == Calls{"cast int64 int32", "cast int64 int32", "diopiAddInp", "cast int32 int64"}));
    EXPECT((values(a) == Values{2, 4, 6}));
}

void the_argument_s_rule_wins() {
    diopiContext ctx;
    diopiTensor a = tensor(f64, {3}), b = tensor(i64, {3});
    EXPECT(diopiAddInpScalar(&ctx, &a, &kOne, &kOne) == diopiSuccess && record.arguments[0] == &a);
    EXPECT(diopiAddInpScalar(&ctx, &b, &kOne, &kOne) == diopiSuccess && seen(0) == i32);
    EXPECT((values(a) == Values{2, 3, 4}) && (values(b) == Values{2, 3, 4}));
}

void the_function_s_rule_wins() {
    diopiContext ctx;
    diopiTensor out = tensor(i64, {}), a = tensor(i8, {3});
    EXPECT(diopiArgmax(&ctx, &out, &a, nullptr, false) == diopiSuccess);
    EXPECT((record.calls == Calls{"cast int8 int32", "diopiArgmax"}) && record.arguments[0] == &out);
    EXPECT((values(out) == Values{2}));
}

void primitives_are_never_converted() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {3}), a = tensor(f64, {3});
    EXPECT(diopiCastDtype(&ctx, &out, &a) == diopiSuccess);
    EXPECT((record.calls == Calls{"cast float64 float32"}) && ctx.temporaries.empty());
}

void a_failing_function_leaves_outputs_alone() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
    faults.function = 1;
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiNoImplement);
    EXPECT(record.calls.back() == "diopiAdd" && (values(out) == Values{1, 2, 3}));
}

void a_failing_cast_stops_the_call() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
    faults.cast = 1;
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiDtypeNotSupported);
    EXPECT(record.calls == Calls{"cast float64 float32"} && (values(out) == Values{1, 2, 3}));
}

void a_failing_cast_back_is_told() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {3}), a = tensor(f32, {3}), b = tensor(f32, {3});
    faults.cast = 1;
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiDtypeNotSupported);
}

void a_failing_copy_is_told() {
    diopiContext ctx;
    diopiTensor x = tensor(f32, {1, 2, 2, 2}), out = tensor(f32, {1, 2, 2, 2}, {8, 1, 4, 2}), w = tensor(f32, {1});
    faults.copy = 1;
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &w, nullptr, kNone) == diopiErrorOccurred);
    EXPECT(record.calls == Calls{"copy"});
}

void a_lack_of_memory_stops_the_call() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
    for (int nth = 1; nth <= 3; ++nth) {
        record = {};
        faults.require = nth;
        EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiErrorOccurred);
        EXPECT((record.calls.empty() || record.calls.back() != "diopiAdd") && (values(out) == Values{1, 2, 3}));
    }
}

void a_tensor_that_cannot_be_asked_stops_the_call() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
    faults.dtype = 2;
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiErrorOccurred && record.calls.empty());
}

void layouts_are_made_and_undone() {
    diopiContext ctx;
    diopiTensor x = tensor(f32, {2, 3, 4, 5}), out = tensor(f32, {2, 3, 4, 5}), w = tensor(f32, {3, 3, 2, 2});
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &w, nullptr, kNone) == diopiSuccess);
    EXPECT((record.calls == Calls{"copy", "diopiConvolution2d", "copy"}));
    EXPECT((record.arguments[0]->strides == Sizes{60, 1, 15, 3}) &&
           (record.arguments[1]->strides == Sizes{60, 1, 15, 3}));
    EXPECT((record.arguments[1]->sizes == Sizes{2, 3, 4, 5}) && record.arguments[2] == &w &&
           record.arguments[3] == nullptr);
    for (int64_t i = 0; i < 120; ++i) EXPECT(fake::load(out, i) == 2.0 * static_cast<double>(i + 1));
}

void an_argument_has_its_own_layout() {
    diopiContext ctx;
    diopiTensor x = tensor(f32, {2, 3, 4, 5}, {60, 1, 15, 3}), out = x, w = tensor(f32, {3, 3, 2, 2}, {12, 1, 6, 3});
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &w, nullptr, kNone) == diopiSuccess);
    EXPECT((record.calls == Calls{"copy", "diopiConvolution2d"}) && record.arguments[1] == &x);
    EXPECT((record.arguments[2]->strides == Sizes{12, 4, 2, 1}));
}

void dtype_and_layout_change_in_one_step() {
    diopiContext ctx;
    diopiTensor x = tensor(f64, {1, 2, 2, 2}), out = tensor(f64, {1, 2, 2, 2}), w = tensor(f32, {1});
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &w, nullptr, kNone) == diopiSuccess);
    EXPECT((record.calls == Calls{"cast float64 float32", "diopiConvolution2d", "cast float32 float64"}));
    EXPECT(seen(1) == f32 && (record.arguments[1]->strides == Sizes{8, 1, 4, 2}));
    EXPECT((values(out) == Values{2, 4, 6, 8, 10, 12, 14, 16}));
}

void a_cast_keeps_the_order_of_dense_tensors() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {2, 3}), a = tensor(f64, {2, 3}, {1, 2}), b = tensor(f64, {2, 3}, {0, 1});
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
    EXPECT((record.arguments[1]->strides == Sizes{1, 2}));
    // An expanded tensor has no order of its own to keep.
    EXPECT((record.arguments[2]->strides == Sizes{3, 1}));
}

void other_ranks_have_no_layout() {
    diopiContext ctx;
    diopiTensor x = tensor(f32, {3, 4, 5}), out = tensor(f32, {3, 4, 5}), w = tensor(f32, {3});
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &w, nullptr, kNone) == diopiSuccess);
    EXPECT(record.calls == Calls{"diopiConvolution2d"} && record.arguments[1] == &x);
}

void sizes_of_one_have_no_order() {
    diopiContext ctx;
    diopiTensor x = tensor(f32, {2, 1, 4, 5}), out = tensor(f32, {2, 1, 4, 5}), w = tensor(f32, {1});
    diopiTensor point = tensor(f32, {4, 3, 1, 1}), result = tensor(f32, {4, 3, 1, 1});
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &w, nullptr, kNone) == diopiSuccess);
    EXPECT(diopiConvolution2d(&ctx, &result, &point, &w, nullptr, kNone) == diopiSuccess);
    // The stride of a dimension of size 1 is never used, so it may be anything.
    diopiTensor odd = tensor(f32, {3, 1, 2, 2}, {4, 99, 2, 1}), nhwc = tensor(f32, {1, 3, 2, 2}, {7, 1, 6, 3});
    EXPECT(diopiConvolution2d(&ctx, &nhwc, &nhwc, &odd, nullptr, kNone) == diopiSuccess);
    EXPECT((record.calls == Calls{"diopiConvolution2d", "diopiConvolution2d", "diopiConvolution2d"}));
}

void empty_tensors_lie_in_every_order() {
    diopiContext ctx;
    diopiTensor x = tensor(f32, {0, 3, 4, 5}), out = tensor(f32, {2, 3, 0, 5}), w = tensor(f32, {1});
    diopiTensor empty = tensor(f64, {0, 3}), other = tensor(f64, {0, 3}), sum = tensor(f64, {0, 3});
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &w, nullptr, kNone) == diopiSuccess);
    EXPECT(record.calls == Calls{"diopiConvolution2d"});
    EXPECT(diopiAdd(&ctx, &sum, &empty, &other, &kOne) == diopiSuccess && seen(1) == f32);
}

void one_tensor_under_two_rules_is_converted_twice() {
    diopiContext ctx;
    diopiTensor x = tensor(f64, {1, 2, 2, 2}), out = tensor(f32, {1, 2, 2, 2}, {8, 1, 4, 2});
    EXPECT(diopiConvolution2d(&ctx, &out, &x, &x, nullptr, kNone) == diopiSuccess);
    EXPECT((record.arguments[1]->strides == Sizes{8, 1, 4, 2}) && (record.arguments[2]->strides == Sizes{8, 4, 2, 1}));
}

void optional_tensors_may_be_absent() {
    diopiContext ctx;
    diopiTensor w = tensor(f64, {2}), dw = tensor(f64, {2});
    EXPECT(diopiSgd(&ctx, &w, &dw, nullptr, 0.5) == diopiSuccess);
    EXPECT(record.arguments[2] == nullptr && (values(w) == Values{0.5, 1}));
}

void mutable_inputs_are_not_written() {
    diopiContext ctx;
    diopiTensor w = tensor(f64, {2}), dw = tensor(f64, {2}), buf = tensor(f64, {2});
    EXPECT(diopiSgd(&ctx, &w, &dw, &buf, 1) == diopiSuccess);
    EXPECT((values(w) == Values{0, 0}) && (values(dw) == Values{1, 2}) && (values(buf) == Values{2, 4}));
}

void strided_tensors_are_made_contiguous() {
    diopiContext ctx;
    diopiTensor w = tensor(f32, {2, 2}, {1, 2}), dw = tensor(f32, {2, 2}), buf = tensor(f32, {2, 2}, {4, 2}, 3);
    EXPECT(diopiSgd(&ctx, &w, &dw, &buf, 1) == diopiSuccess);
    EXPECT((record.calls == Calls{"copy", "copy", "diopiSgd", "copy", "copy"}));
    EXPECT((record.arguments[0]->strides == Sizes{2, 1}) && record.arguments[1] == &dw);
    EXPECT((values(w) == Values{0, 0, 0, 0}) && (values(buf) == Values{2, 4, 6, 8}));
}

void strided_outputs_are_written_where_they_lie() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {2, 2}, {4, 2}, 1), a = tensor(f32, {2, 2}), b = tensor(f32, {2, 2});
    std::fill(out.storage->begin(), out.storage->end(), 0);
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
    EXPECT((values(out) == Values{2, 4, 6, 8}));
    diopiTensor between = out;
    between.offset = 0;
    EXPECT((values(between) == Values{0, 0, 0, 0}));
}

void expanded_inputs_keep_their_values() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {2, 2}), a = tensor(f64, {2, 2}), row = tensor(f64, {2, 2}, {0, 1});
    EXPECT(diopiAdd(&ctx, &out, &a, &row, &kOne) == diopiSuccess);
    EXPECT((values(out) == Values{4, 6, 6, 8}));
}

void host_tensors_stay_as_they_are() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {1}), a = tensor(f32, {1}), b = tensor(f64, {1});
    b.device = diopi_host;
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess && record.arguments[2] == &b);
}

void lists_are_converted_entry_by_entry() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {4}), a = tensor(f32, {2}), b = tensor(f64, {2});
    diopiConstTensorHandle_t list[] = {&a, nullptr, &b};
    EXPECT(diopiCat(&ctx, &out, list, 3, 0) == diopiSuccess);
    EXPECT(record.arguments[1] == &a && record.arguments[2] == nullptr && seen(3) == f32);
    EXPECT(list[2] == &b && record.list != list && (values(out) == Values{1, 2, 1, 2}));
}

void suiting_lists_pass_untouched() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {4}), a = tensor(f32, {2}), b = tensor(f32, {2});
    diopiConstTensorHandle_t list[] = {&a, &b};
    EXPECT(diopiCat(&ctx, &out, list, 2, 0) == diopiSuccess && record.list == list && ctx.temporaries.empty());
}

void long_lists_are_converted_whole() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {50});
    std::vector<diopiTensor> tensors(50, tensor(f64, {1}));
    std::vector<diopiConstTensorHandle_t> list;
    for (int64_t i = 0; i < 50; ++i) {
        tensors[i] = tensor(f64, {1});
        fake::store(tensors[i], 0, static_cast<double>(i));
        list.push_back(&tensors[i]);
    }
    EXPECT(diopiCat(&ctx, &out, list.data(), 50, 0) == diopiSuccess && ctx.temporaries.size() == 51);
    for (int64_t i = 0; i < 50; ++i) EXPECT(fake::load(out, i) == static_cast<double>(i));
}

void absent_lists_stay_absent() {
    diopiContext ctx;
    diopiTensor out = tensor(f32, {1});
    EXPECT(diopiCat(&ctx, &out, nullptr, 0, 0) == diopiSuccess && record.list == nullptr);
}

void lists_of_outputs_are_cast_back() {
    diopiContext ctx;
    diopiTensor input = tensor(i64, {3}), a = tensor(i64, {1}), b = tensor(i64, {2});
    diopiTensorHandle_t outs[] = {&a, &b};
    EXPECT(diopiSplitWithSizes(&ctx, outs, 2, &input, kNone, 0) == diopiSuccess);
    EXPECT(seen(1) == i32 && seen(2) == i32 && (values(a) == Values{1}) && (values(b) == Values{2, 3}));
}

void allocated_outputs_have_the_caller_s_dtype() {
    diopiContext ctx;
    diopiTensor input = tensor(i64, {3}), mask = tensor(diopi_dtype_bool, {3});
    fake::store(mask, 1, 0);
    diopiTensorHandle_t out = nullptr;
    EXPECT(diopiMaskedSelect(&ctx, &out, &input, &mask) == diopiSuccess);
    EXPECT((record.calls == Calls{"cast int64 int32", "diopiMaskedSelect", "cast int32 int64"}));
    EXPECT(out->dtype == i64 && (values(*out) == Values{1, 3}));
}

void allocated_outputs_that_suit_are_kept() {
    diopiContext ctx;
    diopiTensor input = tensor(f32, {3}), mask = tensor(diopi_dtype_bool, {3});
    diopiTensorHandle_t out = nullptr;
    EXPECT(diopiMaskedSelect(&ctx, &out, &input, &mask) == diopiSuccess);
    EXPECT(record.calls == Calls{"diopiMaskedSelect"} && ctx.temporaries.size() == 1 &&
           out == ctx.temporaries[0].get());
}

// Whether every temporary went back to the context once, but `kept`.
bool all_returned(const diopiContext& ctx, diopiConstTensorHandle_t kept = nullptr) {
    size_t expected = 0;
    for (const auto& temporary : ctx.temporaries) {
        if (temporary.get() == kept) continue;
        ++expected;
        if (std::count(ctx.returned.begin(), ctx.returned.end(), temporary.get()) != 1) return false;
    }
    return ctx.returned.size() == expected;
}

void temporaries_go_back_to_the_context() {
    diopiContext ctx;
    diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess && ctx.temporaries.size() == 3 && all_returned(ctx));
}

void temporaries_go_back_after_every_failure() {
    for (int nth = 1; nth <= 7; ++nth) {
        diopiContext ctx;
        diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
        if (nth <= 3) faults.cast = nth;
        if (nth > 3 && nth <= 6) faults.require = nth - 3;
        if (nth == 7) faults.function = 1;
        EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) != diopiSuccess && all_returned(ctx));
        faults = {};
    }
}

void what_the_vendor_throws_becomes_a_status() {
    faults.throws = true;
    for (int nth = 1; nth <= 4; ++nth) {
        diopiContext ctx;
        diopiTensor out = tensor(f64, {3}), a = tensor(f64, {3}), b = tensor(f64, {3});
        (nth <= 3 ? faults.cast : faults.function) = nth <= 3 ? nth : 1;
        EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiErrorOccurred && all_returned(ctx));
    }
    diopiContext ctx;
    diopiTensor out = tensor(f32, {3}), a = tensor(f64, {3});
    faults.cast = 1;
    EXPECT(diopiCastDtype(&ctx, &out, &a) == diopiErrorOccurred);
}

void what_a_function_allocated_goes_back_once_it_is_cast() {
    diopiContext ctx;
    diopiTensor input = tensor(i64, {3}), mask = tensor(diopi_dtype_bool, {3});
    diopiTensorHandle_t out = nullptr;
    EXPECT(diopiMaskedSelect(&ctx, &out, &input, &mask) == diopiSuccess);
    EXPECT(ctx.temporaries.size() == 3 && all_returned(ctx, out));
}

void integers_that_a_cast_would_change_are_found() {
    setenv("DIOPI_ADAPTOR_CHECK_RANGE", "1", 1);
    diopiContext ctx;
    diopiTensor out = tensor(i64, {2, 2}), a = tensor(i64, {2, 2}, {1, 2}), b = tensor(i64, {2, 2}, {0, 1});
    fake::store(a, 1, -2147483648.0);
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
    fake::store(b, 3, 2147483648.0);
    record.calls.clear();
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiErrorOccurred);
    EXPECT((record.calls == Calls{"cast int64 int32"}) && (values(out) == Values{4, -2147483644, 6, 8}));
}

void integers_that_are_not_checked_wrap() {
    unsetenv("DIOPI_ADAPTOR_CHECK_RANGE");
    diopiContext ctx;
    diopiTensor out = tensor(i64, {1}), a = tensor(i64, {1}), b = tensor(i64, {1});
    fake::store(a, 0, 4294967296.0);
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
}

void empty_integers_are_in_range() {
    setenv("DIOPI_ADAPTOR_CHECK_RANGE", "1", 1);
    diopiContext ctx;
    diopiTensor out = tensor(i64, {0, 3}), a = tensor(i64, {0, 3}), b = tensor(f64, {0, 3});
    EXPECT(diopiAdd(&ctx, &out, &a, &b, &kOne) == diopiSuccess);
}

#define SCENARIO(name) {#name, name}
const std::map<std::string, std::function<void()>>& scenarios() {
    static const std::map<std::string, std::function<void()>> all = {
        SCENARIO(suiting_tensors_pass_untouched),
        SCENARIO(suiting_tensors_allocate_nothing),
        SCENARIO(inputs_are_cast_and_outputs_cast_back),
        SCENARIO(each_tensor_decides_for_itself),
        SCENARIO(a_tensor_given_twice_is_converted_once),
        SCENARIO(an_output_that_is_an_input_stays_one),
        SCENARIO(two_handles_of_one_view_are_one_tensor),
        SCENARIO(views_of_one_storage_that_differ_are_two_tensors),
        SCENARIO(inout_is_converted_both_ways),
        SCENARIO(the_argument_s_rule_wins),
        SCENARIO(the_function_s_rule_wins),
        SCENARIO(primitives_are_never_converted),
        SCENARIO(a_failing_function_leaves_outputs_alone),
        SCENARIO(a_failing_cast_stops_the_call),
        SCENARIO(a_failing_cast_back_is_told),
        SCENARIO(a_failing_copy_is_told),
        SCENARIO(a_lack_of_memory_stops_the_call),
        SCENARIO(a_tensor_that_cannot_be_asked_stops_the_call),
        SCENARIO(layouts_are_made_and_undone),
        SCENARIO(an_argument_has_its_own_layout),
        SCENARIO(dtype_and_layout_change_in_one_step),
        SCENARIO(a_cast_keeps_the_order_of_dense_tensors),
        SCENARIO(other_ranks_have_no_layout),
        SCENARIO(sizes_of_one_have_no_order),
        SCENARIO(empty_tensors_lie_in_every_order),
        SCENARIO(one_tensor_under_two_rules_is_converted_twice),
        SCENARIO(optional_tensors_may_be_absent),
        SCENARIO(mutable_inputs_are_not_written),
        SCENARIO(strided_tensors_are_made_contiguous),
        SCENARIO(strided_outputs_are_written_where_they_lie),
        SCENARIO(expanded_inputs_keep_their_values),
        SCENARIO(host_tensors_stay_as_they_are),
        SCENARIO(lists_are_converted_entry_by_entry),
        SCENARIO(suiting_lists_pass_untouched),
        SCENARIO(long_lists_are_converted_whole),
        SCENARIO(absent_lists_stay_absent),
        SCENARIO(lists_of_outputs_are_cast_back),
        SCENARIO(allocated_outputs_have_the_caller_s_dtype),
        SCENARIO(allocated_outputs_that_suit_are_kept),
        SCENARIO(temporaries_go_back_to_the_context),
        SCENARIO(temporaries_go_back_after_every_failure),
        SCENARIO(what_the_vendor_throws_becomes_a_status),
        SCENARIO(what_a_function_allocated_goes_back_once_it_is_cast),
        SCENARIO(integers_that_a_cast_would_change_are_found),
        SCENARIO(integers_that_are_not_checked_wrap),
        SCENARIO(empty_integers_are_in_range),
    };
    return all;
}

}  // namespace

// Without arguments: the names of all scenarios. With a name: exit status 0 if that one holds.
int main(int argc, char** argv) {
    if (argc == 1) {
        for (const auto& [name, body] : scenarios()) std::printf("%s\n", name.c_str());
        return 0;
    }
    if (std::string(argv[1]) == "leak") return std::malloc(4321) == nullptr;  // what the leak sanitizer must tell of
    const auto found = scenarios().find(argv[1]);
    if (found == scenarios().end()) return 2;
    found->second();
    return 0;
}
