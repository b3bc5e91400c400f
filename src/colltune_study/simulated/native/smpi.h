/* What is taken from inside the simulator: its own collectives by name, and the mode without data. */
#pragma once

#include "call.h"

#include <functional>
#include <string>

/* Ours by their names, the simulator's own as "smpi.NAME"; empty where there is none of that name. */
std::function<void(ct_simulated_call &)> ct_runner_find(const std::string &collective, const std::string &algorithm);

/* For the calling rank: messages copy nothing, and times stay as they are. */
void ct_set_without_data(bool on);
