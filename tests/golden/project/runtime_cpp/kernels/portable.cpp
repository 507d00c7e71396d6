// What the miniature's base defines: enough to be found, nothing to be run.
#include <diopi/functions.h>

namespace impl::portable {

diopiError_t diopiAvgPool2d(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, diopiSize_t, diopiSize_t,
                            diopiSize_t, bool, bool, const int64_t*) {
    return diopiNoImplement;
}

diopiError_t diopiAvgPool2dBackward(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t,
                                    diopiConstTensorHandle_t, diopiSize_t, diopiSize_t, diopiSize_t, bool, bool,
                                    const int64_t*) {
    return diopiNoImplement;
}

diopiError_t diopiMax(diopiContextHandle_t, diopiTensorHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, int64_t) {
    return diopiNoImplement;
}

diopiError_t diopiSum(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, diopiSize_t) {
    return diopiNoImplement;
}

diopiError_t diopiCat(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t*, int64_t, int64_t) {
    return diopiNoImplement;
}

diopiError_t diopiMaskedSelect(diopiContextHandle_t, diopiTensorHandle_t*, diopiConstTensorHandle_t, diopiConstTensorHandle_t) {
    return diopiNoImplement;
}

diopiError_t diopiCopyInp(diopiContextHandle_t, diopiConstTensorHandle_t, diopiTensorHandle_t) { return diopiNoImplement; }

diopiError_t diopiCastDtype(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) { return diopiNoImplement; }

}  // namespace impl::portable
