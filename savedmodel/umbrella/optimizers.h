// All optimizers and learning rate schedules, and the optimizers of embedding tables.
#pragma once

#include <keel/optimizers/adadelta.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/adam_w.h>
#include <keel/optimizers/adamax.h>
#include <keel/optimizers/embedding/tpu_optimizers.h>
#include <keel/optimizers/ftrl.h>
#include <keel/optimizers/lamb.h>
#include <keel/optimizers/lion.h>
#include <keel/optimizers/nadam.h>
#include <keel/optimizers/optimizer.h>
#include <keel/optimizers/rmsprop.h>
#include <keel/optimizers/schedules/learning_rate.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>
