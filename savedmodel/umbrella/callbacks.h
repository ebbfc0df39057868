// All callbacks of fit(), and Callback, the base class for your own callbacks.
#pragma once

#include <keel/layers/callbacks/csv_logger.h>
#include <keel/layers/callbacks/early_stopping.h>
#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/callbacks/learning_rate_scheduler.h>
#include <keel/layers/callbacks/reduce_lr_on_plateau.h>
#include <keel/layers/callbacks/swap_ema_weights.h>
#include <keel/layers/callbacks/tensorboard.h>
#include <keel/layers/callbacks/terminate_on_nan.h>
#include <keel/layers/callbacks/terminate_on_signal.h>
#include <keel/layers/training/callback.h>
#include <keel/layers/training/progbar_logger.h>
#include <keel/savedmodel/checkpoint/backup_and_restore.h>
#include <keel/savedmodel/checkpoint/model_checkpoint.h>
