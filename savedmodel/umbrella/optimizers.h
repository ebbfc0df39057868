// All optimizers and learning rate schedules, the optimizers of embedding tables, and the bases of
// your own optimizers.
#pragma once

#include <keel/framework/update_rule.h>
#include <keel/framework/whole_variable_rule.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/embedding/rowwise_adagrad.h>
#include <keel/optimizers/embedding/sparse_core_optimizers.h>
#include <keel/optimizers/embedding/tpu_optimizers.h>
#include <keel/optimizers/embedding/tpu_parameters.h>
#include <keel/optimizers/loss_scale.h>
#include <keel/optimizers/multi_optimizer.h>
#include <keel/optimizers/optimizer.h>
#include <keel/optimizers/rule_optimizer.h>
#include <keel/optimizers/schedule_free.h>
#include <keel/optimizers/schedules/learning_rate.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>
#include <keel/optimizers/whole_variable.h>
