// Distribution strategies: one device, several replicas, several processes.
#pragma once

#include <keel/distribute/distributed_dataset.h>
#include <keel/distribute/process_group.h>
#include <keel/distribute/strategy.h>
#include <keel/distribute/tpu/tpu_strategy.h>
