// A vendor that records what reaches its functions and computes in whatever dtype it is given.
#include "fake_runtime.h"

using fake::count;
using fake::load;
using fake::store;

namespace {

const char* word(diopiDtype_t dtype) {
    switch (dtype) {
        case diopi_dtype_int8: return "int8";
        case diopi_dtype_int32: return "int32";
        case diopi_dtype_int64: return "int64";
        case diopi_dtype_float32: return "float32";
        case diopi_dtype_float64: return "float64";
        default: return "other";
    }
}

void write(diopiConstTensorHandle_t from, diopiTensorHandle_t to) {
    for (int64_t i = 0; i < count(*from); ++i) store(*to, i, load(*from, i));
}

// Notes the call; true when the function is due to fail.
bool fails(const char* function, std::initializer_list<const diopiTensor*> arguments) {
    fake::record.calls.emplace_back(function);
    fake::record.arguments.assign(arguments);
    return fake::fails(fake::faults.function);
}

double number(const diopiScalar_t* scalar) {
    return scalar->stype == diopi_dtype_float64 ? scalar->fval : static_cast<double>(scalar->ival);
}

}  // namespace

namespace impl::recorder {

diopiError_t diopiCastDtype(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    fake::record.calls.push_back(std::string("cast ") + word(input->dtype) + " " + word(out->dtype));
    if (fake::fails(fake::faults.cast)) return diopiDtypeNotSupported;
    write(input, out);
    return diopiSuccess;
}

diopiError_t diopiCopyInp(diopiContextHandle_t, diopiConstTensorHandle_t src, diopiTensorHandle_t dest) {
    fake::record.calls.emplace_back("copy");
    if (fake::fails(fake::faults.copy)) return diopiErrorOccurred;
    write(src, dest);
    return diopiSuccess;
}

diopiError_t diopiAdd(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                      diopiConstTensorHandle_t other, const diopiScalar_t* alpha) {
    if (fails("diopiAdd", {out, input, other})) return diopiNoImplement;
    for (int64_t i = 0; i < count(*out); ++i) store(*out, i, load(*input, i) + number(alpha) * load(*other, i));
    return diopiSuccess;
}

diopiError_t diopiAddInp(diopiContextHandle_t, diopiTensorHandle_t input, diopiConstTensorHandle_t other,
                         const diopiScalar_t* alpha) {
    if (fails("diopiAddInp", {input, other})) return diopiNoImplement;
    for (int64_t i = 0; i < count(*input); ++i) store(*input, i, load(*input, i) + number(alpha) * load(*other, i));
    return diopiSuccess;
}

diopiError_t diopiAddScalar(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                            const diopiScalar_t* other, const diopiScalar_t* alpha) {
    if (fails("diopiAddScalar", {out, input})) return diopiNoImplement;
    for (int64_t i = 0; i < count(*out); ++i) store(*out, i, load(*input, i) + number(alpha) * number(other));
    return diopiSuccess;
}

diopiError_t diopiAddInpScalar(diopiContextHandle_t, diopiTensorHandle_t input, const diopiScalar_t* other,
                               const diopiScalar_t* alpha) {
    if (fails("diopiAddInpScalar", {input})) return diopiNoImplement;
    for (int64_t i = 0; i < count(*input); ++i) store(*input, i, load(*input, i) + number(alpha) * number(other));
    return diopiSuccess;
}

// Doubles the input: enough to see which elements arrive where.
diopiError_t diopiConvolution2d(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input,
                                diopiConstTensorHandle_t weight, diopiConstTensorHandle_t bias, diopiSize_t) {
    if (fails("diopiConvolution2d", {out, input, weight, bias})) return diopiNoImplement;
    for (int64_t i = 0; i < count(*out); ++i) store(*out, i, 2 * load(*input, i));
    return diopiSuccess;
}

diopiError_t diopiCat(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t* tensors,
                      int64_t num_inputs, int64_t) {
    if (fails("diopiCat", {out})) return diopiNoImplement;
    fake::record.list = tensors;
    int64_t next = 0;
    for (int64_t i = 0; i < num_inputs; ++i) {
        fake::record.arguments.push_back(tensors[i]);
        for (int64_t k = 0; tensors[i] != nullptr && k < count(*tensors[i]); ++k) {
            store(*out, next++, load(*tensors[i], k));
        }
    }
    return diopiSuccess;
}

diopiError_t diopiSplitWithSizes(diopiContextHandle_t, diopiTensorHandle_t* outs, int64_t num_outs,
                                 diopiConstTensorHandle_t input, diopiSize_t, int64_t) {
    if (fails("diopiSplitWithSizes", {input})) return diopiNoImplement;
    fake::record.list = outs;
    int64_t next = 0;
    for (int64_t i = 0; i < num_outs; ++i) {
        fake::record.arguments.push_back(outs[i]);
        for (int64_t k = 0; k < count(*outs[i]); ++k) store(*outs[i], k, load(*input, next++));
    }
    return diopiSuccess;
}

diopiError_t diopiMaskedSelect(diopiContextHandle_t ctx, diopiTensorHandle_t* out, diopiConstTensorHandle_t input,
                               diopiConstTensorHandle_t mask) {
    if (fails("diopiMaskedSelect", {input, mask})) return diopiNoImplement;
    std::vector<double> chosen;
    for (int64_t i = 0; i < count(*input); ++i) {
        if (load(*mask, i) != 0) chosen.push_back(load(*input, i));
    }
    const int64_t length = static_cast<int64_t>(chosen.size());
    const diopiSize_t sizes{&length, 1};
    const diopiError_t status = diopiRequireTensor(ctx, out, &sizes, nullptr, input->dtype, diopi_device);
    for (int64_t i = 0; status == diopiSuccess && i < length; ++i) store(**out, i, chosen[i]);
    return status;
}

// Spoils the gradient, as functions do whose inputs the contract leaves mutable.
diopiError_t diopiSgd(diopiContextHandle_t, diopiTensorHandle_t w, diopiTensorHandle_t dw, diopiTensorHandle_t buf,
                      double lr) {
    if (fails("diopiSgd", {w, dw, buf})) return diopiNoImplement;
    for (int64_t i = 0; i < count(*w); ++i) {
        if (buf != nullptr) store(*buf, i, load(*buf, i) + load(*dw, i));
        store(*w, i, load(*w, i) - lr * load(*dw, i));
        if (w->dtype == diopi_dtype_float32) store(*dw, i, 0);
    }
    return diopiSuccess;
}

diopiError_t diopiArgmax(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input, const int64_t*,
                         bool) {
    if (fails("diopiArgmax", {out, input})) return diopiNoImplement;
    int64_t best = 0;
    for (int64_t i = 1; i < count(*input); ++i) best = load(*input, i) > load(*input, best) ? i : best;
    store(*out, 0, static_cast<double>(best));
    return diopiSuccess;
}

}  // namespace impl::recorder
