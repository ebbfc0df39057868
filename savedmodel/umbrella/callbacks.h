// All callbacks of fit(), and Callback, the base class for your own callbacks.
#pragma once

#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/callbacks/logging.h>
#include <keel/layers/callbacks/optimizer_callbacks.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/training/callback.h>
#include <keel/layers/training/progbar_logger.h>
#include <keel/savedmodel/checkpoint/saving_callbacks.h>
