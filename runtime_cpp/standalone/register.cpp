// The functions of diopi_register.h: how a vendor's initLibrary() gives its nine device functions.
#include <diopi/diopi_register.h>

#include "vendor.h"

using diopi::standalone::registered_functions;

diopiError_t diopiRegisterDeviceMallocFunc(malloc_func_t func) {
    registered_functions().malloc = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterDevMemFreeFunc(free_func_t func) {
    registered_functions().free = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterMemcpyH2DAsyncFunc(memcpy_h2d_async_func_t func) {
    registered_functions().memcpy_h2d_async = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterMemcpyD2HAsyncFunc(memcpy_d2h_async_func_t func) {
    registered_functions().memcpy_d2h_async = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterMemcpyD2DAsyncFunc(memcpy_d2d_async_func_t func) {
    registered_functions().memcpy_d2d_async = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterStreamCreateFunc(create_stream_func_t func) {
    registered_functions().create_stream = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterStreamDestroyFunc(destroy_stream_func_t func) {
    registered_functions().destroy_stream = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterSynchronizeStreamFunc(sync_stream_func_t func) {
    registered_functions().sync_stream = func;
    return diopiSuccess;
}

diopiError_t diopiRegisterGetLastErrorFunc(get_last_error_string_func_t func) {
    registered_functions().get_last_error_string = func;
    return diopiSuccess;
}
