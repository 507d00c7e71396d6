// Laid over droplet: seven functions that end, hang or leave in ways of their own; droplet has all others.
#include <diopi/functions.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

namespace {

[[noreturn]] void sleep_on() {
    while (true) pause();
}

// More than any stack, and nothing that an optimizer could make a loop of.
int deep(volatile const char* above) {
    volatile char here[1 << 16];
    here[0] = *above;
    return here[0] + deep(here);
}

}  // namespace

extern "C" {

diopiError_t diopiRelu(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) {
    std::raise(SIGSEGV);
    return diopiSuccess;
}

diopiError_t diopiTanh(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) { std::abort(); }

diopiError_t diopiSigmoid(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) { std::exit(0); }

diopiError_t diopiSilu(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) {
    throw std::runtime_error("this must not leave a C function");
}

diopiError_t diopiExp(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) {
    const char start = 1;
    return deep(&start) == 0 ? diopiSuccess : diopiErrorOccurred;
}

diopiError_t diopiLog(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) { sleep_on(); }

diopiError_t diopiSqrt(diopiContextHandle_t, diopiTensorHandle_t, diopiConstTensorHandle_t) {
    volatile bool goes_on = true;
    while (goes_on) {
    }
    return diopiSuccess;
}
}
