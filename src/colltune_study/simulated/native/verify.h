#pragma once

#include "call.h"

#include <functional>
#include <string>

/* Runs `run` with real data in buffers of this rank's own; whether the result of this rank is right. */
bool ct_verify(ct_simulated_call call, const std::string &collective, const std::function<void(ct_simulated_call &)> &run);
