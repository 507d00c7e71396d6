// The visibility of libtorch_dipu.so: everything is hidden but what carries DIPU_API.
#pragma once

#define DIPU_API __attribute__((visibility("default")))
