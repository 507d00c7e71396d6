// A vendor whose diopiExp is right, and whose diopiNeg does to its process what the variable HOSTILE says.
#include "host_vendor.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::string error_text;

bool is(const char* word) {
    const char* const chosen = std::getenv("HOSTILE");
    return chosen != nullptr && std::strcmp(chosen, word) == 0;
}

void nothing(int) {}

// A process that outlives the call and holds every pipe; a daemon has another session and another parent.
void leave_process(bool daemon) {
    if (const pid_t child = fork(); child != 0) {
        if (daemon) waitpid(child, nullptr, 0);
        return;
    }
    if (daemon) {
        setsid();
        if (fork() != 0) _exit(0);
    }
    sleep(600);
    _exit(0);
}

void flood(int descriptor, int kilobytes) {
    const std::string noise(1024, 'x');
    for (int i = 0; i < kilobytes; ++i) {
        if (write(descriptor, noise.data(), noise.size()) < 0) return;
    }
}

void close_all() {
    for (int descriptor = 0; descriptor < 32; ++descriptor) close(descriptor);
}

diopiError_t failed(std::string text) {
    error_text = std::move(text);
    return diopiErrorOccurred;
}

diopiError_t hostile() {
    if (is("leaves_process") || is("leaves_process_and_crashes") || is("leaves_process_and_hangs"))
        leave_process(false);
    if (is("leaves_daemon") || is("leaves_daemon_and_crashes") || is("leaves_daemon_and_hangs")) leave_process(true);
    if (is("leaves_process_and_crashes") || is("leaves_daemon_and_crashes")) raise(SIGSEGV);
    if (is("leaves_process_and_hangs") || is("leaves_daemon_and_hangs")) sleep(600);
    if (is("returns_twice")) fork();
    if (is("kills_parent")) kill(getppid(), SIGKILL), sleep(600);
    if (is("terminates_parent")) kill(getppid(), SIGTERM), sleep(600);
    if (is("stops_parent")) kill(getppid(), SIGSTOP), sleep(600);
    if (is("kills_group")) kill(0, SIGKILL);
    if (is("stops_itself")) raise(SIGSTOP);
    if (is("floods_output")) flood(1, 16 * 1024);
    if (is("floods_pipes")) {
        for (int descriptor = 3; descriptor < 32; ++descriptor) flood(descriptor, 64);
    }
    if (is("closes_all")) close_all();
    if (is("closes_all_and_hangs")) close_all(), sleep(600);
    if (is("closes_input")) close(0);
    if (is("replaces_pipes")) {
        const int null = open("/dev/null", O_RDWR);
        for (int descriptor = 0; descriptor < 32; ++descriptor) dup2(null, descriptor);
    }
    if (is("changes_folder") && chdir("/") != 0) return diopiErrorOccurred;
    if (is("changes_mask")) umask(0);
    if (is("handles_signals")) signal(SIGSEGV, nothing);
    if (is("ignores_signals")) signal(SIGTERM, SIG_IGN);
    if (is("ignores_signals_and_hangs")) {
        for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
        sleep(600);
    }
    if (is("changes_environment")) setenv("LC_ALL", "tlh", 1);
    if (is("clears_environment")) clearenv();
    if (is("replaces_program")) execl("/bin/true", "true", nullptr);
    if (is("exits")) _exit(0);
    if (is("throws_number")) throw 3;
    if (is("ends_thread")) pthread_exit(nullptr);
    if (is("tells_much")) return failed(std::string(1 << 20, 'e'));
    if (is("tells_bytes")) return failed("caf\xe9 \xff\n\x1b[31m red");
    return diopiSuccess;
}

const char* last_error() { return error_text.c_str(); }

// What a library does when it is loaded.
__attribute__((constructor)) void loaded() {
    if (is("dies_loading")) std::abort();
    if (is("exits_loading")) std::exit(0);
    if (is("is_killed_loading")) raise(SIGKILL);
    if (const char* const marker = std::getenv("HOSTILE_ONCE"); is("is_killed_once") && mkdir(marker, 0700) == 0)
        raise(SIGKILL);
    if (is("closes_all_loading")) close_all();
}

template <class F>
diopiError_t unary(diopiTensorHandle_t out, diopiConstTensorHandle_t input, F f) {
    diopiDtype_t dtype;
    diopiGetTensorDtype(input, &dtype);
    if (dtype != diopi_dtype_float32) return diopiDtypeNotSupported;
    void* target = nullptr;
    const void* source = nullptr;
    int64_t count = 0;
    diopiGetTensorData(out, &target);
    diopiGetTensorDataConst(input, &source);
    diopiGetTensorNumel(input, &count);
    for (int64_t i = 0; i < count; ++i) static_cast<float*>(target)[i] = f(static_cast<const float*>(source)[i]);
    return diopiSuccess;
}

}  // namespace

extern "C" {

const char* diopiGetLastErrorString() { return last_error(); }

diopiError_t diopiNeg(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    const diopiError_t status = hostile();
    return status != diopiSuccess ? status : unary(out, input, [](float x) { return -x; });
}

diopiError_t diopiExp(diopiContextHandle_t, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    return unary(out, input, [](float x) { return std::exp(x); });
}

}  // extern "C"
