// The card's own functions of two kinds: one that the schema would give as well, and one that nothing else gives.
#include <diopi/functions.h>

namespace impl::card {

diopiError_t diopiAdd(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t, diopiConstTensorHandle_t,
                      const diopiScalar_t*) {
    return diopiNoImplement;
}

diopiError_t diopiCat(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t*, int64_t, int64_t) {
    return diopiNoImplement;
}

}  // namespace impl::card
