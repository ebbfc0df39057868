// check_same_training(): checks that the processes of a job train the same model with the same
// options.
#pragma once

#include <keel/distribute/process_group.h>
#include <keel/framework/config/config.h>
#include <keel/layers/training/model.h>
#include <keel/layers/training/training_options.h>

namespace keel {

// Compares the options of fit, the configs of the optimizer, losses and metrics, and the configs of
// all layers. Throws ValueError in all processes, naming the option and both values, if the
// settings of a rank differ from those of rank 0.
//
// Names are not compared, because the numbers in them depend on the layers created before.
// Vocabularies, functions and layers without a config are not compared either. Collective; costs
// one exchange of a few bytes unless there is a difference.
void check_same_training(distribute::ProcessGroup& group, const char* caller, const Model& model,
                         const Trainer& trainer, const FitOptions& options);

}  // namespace keel
