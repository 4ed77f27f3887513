// SPW_ENTRY marks a function that instrumented or foreign code calls by its C name.
#pragma once

#define SPW_ENTRY extern "C" __attribute__((visibility("default")))
