// Checks that the processes of a job train the same model with the same options.
#pragma once

#include <keel/distribute/process_group.h>
#include <keel/framework/config/config.h>
#include <keel/layers/training/model.h>
#include <keel/layers/training/training_options.h>

namespace keel {

// Compares the options of fit, the configs of the optimizer, losses and metrics, and those of all
// layers. ValueError in all processes, naming the option and both values, if a rank's differ from
// those of rank 0. Names are not compared: the numbers in them count layers made before. Neither
// are vocabularies, functions, and layers without a config. Collective; one exchange of a few bytes
// unless there is a difference.
void check_same_training(distribute::ProcessGroup& group, const char* caller, const Model& model,
                         const Trainer& trainer, const FitOptions& options);

}  // namespace keel
