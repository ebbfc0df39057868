#!/usr/bin/env python3
"""Prints a header with its comments as Doxygen's, line for line: `//` before a declaration becomes `///`,
`//` behind one becomes `///<`. The headers themselves are free of markup. Used by docs/Doxyfile.

A comment before functions that follow each other without an empty line holds for all of them, up to
one with a comment of its own. Members that mean the same in every class (CONVENTIONS) need no comment of their own.
"""
import re
import sys

# A line of code, in which `//` inside a string is no comment, and the comment behind it.
BEHIND_CODE = re.compile(r'^(?P<code>(?:[^"/]|"(?:\\.|[^"\\])*"|/(?!/))*\S\s*)//(?!/) ?(?P<text>.*)$')
INSTANTIATION = re.compile(r"^ *extern template [^;]*;$", re.MULTILINE)
IGNORED = re.compile(r"^\s*(NOLINT|clang-format|IWYU)")
EXAMPLE = re.compile(r"^ {2,}\S")  # indented further than a sentence
NO_WORD = re.compile(r"([\\@#<>|*~])")

# Declarations that have the same meaning in every class, and their documentation.
CONVENTIONS = [(re.compile(pattern), text) for pattern, text in [
    (r"static constexpr char kClassName\[\]", "The name of the class in configurations and files."),
    (r"using (\w*Options|Parameters) = \w+;", "The options of the constructor."),
    (r"static (constexpr )?void fields\(", "Calls `field` with the name and the value of each option that "
                              "configurations contain."),
    (r"explicit \w+\((const )?\w*Options&? options( = \{\})?\)", "Constructs the object from its options."),
    (r"using (\w+) = (Layer)?Handle<\w+>;", "A handle to the object, under Keras's name."),
    (r"std::string name = \{\};", "The name of the object. By default, it is derived from the class name and "
                                  "unique."),
    (r"bool trainable = true;", "Whether training updates the weights of the layer; default true."),
    (r"DTypePolicy dtype = \{\};", "The dtypes of the computation and of the weights. By default, those of the "
                                   "global policy; see set\\_dtype\\_policy()."),
    (r"Config get_config\(\) const override", "Returns the options as a configuration."),
    (r"(friend )?(bool|auto) operator(==|<=>)\(", "Compares the values."),
    (r"(friend )?std::ostream& operator<<\(", "Prints the value."),
    (r"explicit operator bool\(\)", "Returns false if the object is empty."),
    (r"using \w+ = Handle<", "A handle to an object of this class."),
    (r"EmbeddingOptimizer\(const tpu::", "The optimizer with these options."),
    (r"using \w+(Loss|Metric) =( Formula\w+<| RateAtRateMetric<| CountMetric<| IoUMetricOf<|$)",
     "The class with these options."),
    (r"using \w+\dD\w*Options = \w+<\d>;", "The options for this number of spatial axes."),
    (r"using \w+\dD\w*Layer =( \w+<|$)", "The layer for this number of spatial axes."),
    (r"static constexpr (char|const char\*) kClassName\b", "The name of the class in configs and files."),
    (r"static constexpr const char\* kUnsaved\[\]", "Options that configs do not contain."),
    (r"static constexpr auto kDirection\b", "Tells callbacks which values are better."),
    (r"using Options = ", "The options of the constructor."),
    (r"explicit \w+\((const )?Options&? options\)", "Makes an object with these options."),
    (r"static (constexpr )?void fields\(auto& self", "Lists the options in the order of configs."),
    (r"void check\(const char\* caller\)", "Throws ValueError, naming caller, if an option is out of range."),
    (r"(static )?bool (sparse_labels|mixes_rows|uses_mask)\(", "As the function of Loss or Metric with this name."),
    (r"Tensor per_sample\(", "Returns the value of each sample."),
    (r"Config get_config\(\)", "Returns Keras's config."),
    (r"std::string name = ", "The name in logs, errors and configs."),
    (r"std::string reduction = ", "The name of a Reduction."),
    (r"DType dtype = DType::kFloat32;$", "The dtype in which Keras computes; kept for files only."),
    (r"LearningRate learning_rate = ", "The learning rate: a number, a schedule or a function."),
    (r"(std::optional<double> (weight_decay|(global_)?clip(norm|value)|loss_scale_factor)|bool use_ema|double ema_momentum"
     r"|std::optional<int64_t> (ema_overwrite_frequency|gradient_accumulation_steps)"
     r"|LazyRows lazy_rows) = ", "A common option; see OptimizerOptions."),
    (r"(bool use_gradient_accumulation|std::optional<double> (clip_weight_m..|weight_decay_factor"
     r"|clip_gradient_m..)|bool multiply_weight_decay_factor_by_learning_rate|ClipValue clipvalue"
     r"|bool low_dimensional_packing_status|SlotVariableCreationFn slot_variable_creation_fn) = ",
     "A parameter of all classes; see the start of this file."),
]]
# Several members in one declaration, each of which gets the comment.
SEVERAL = re.compile(r"^(?P<indent>\s+)(?P<type>double|std::optional<double>) "
                     r"(?P<members>\w+ = [^,;]+(?:, \w+ = [^,;]+)+);(?P<rest>.*)$")

STARTS_A_STATEMENT = re.compile(r"(^|[;{}:])\s*$")
FUNCTION = re.compile(r"^(template\b|requires\b|\[\[|[\w:<>,&*~\[\]. ]*\boperator\b|[\w:<>,&*~\[\]. ]+\()")
NO_FUNCTION = re.compile(r"^(using|typedef|struct|class|enum|namespace|static_assert|return|if|for|while|#)\b")


def escaped(text: str) -> str:
    """Text that Doxygen and Markdown print as it is."""
    return re.sub(r"(?<![\w`])_|_(?![\w`])", r"\\_", NO_WORD.sub(r"\\\1", text))


class Filter:
    def __init__(self):
        self.out = []
        self.file_comment = True
        self.in_example = False
        self.behind_column = 0  # of the comment behind the line before
        self.block = []  # the sentences of the comment directly before this line
        self.group = None  # the indentation and sentences of the comment that holds for this run
        self.at_start = True  # a statement begins on this line

    def comment(self, indent: str, text: str):
        if self.behind_column and len(indent) == self.behind_column:
            self.out.append(f"{indent}///< {escaped(text.strip())}")
            return
        self.behind_column = 0
        is_example = bool(EXAMPLE.match(text))
        if is_example and not self.in_example:
            self.in_example = True
            self.out[-1] += " @code"  # the line before it is a comment
        elif self.in_example and text.strip() and not is_example:
            self.close_example()
        body = text if self.in_example else " " + escaped(text.strip())
        self.out.append(f"{indent}///{body.rstrip()}")
        if not self.in_example:
            self.block.append(escaped(text.strip()))

    def close_example(self):
        self.in_example = False
        self.out[-1] += " @endcode"

    def end_comment(self):
        if self.in_example:
            self.close_example()
        if self.file_comment and self.out:
            self.out[-1] += " @file"
        self.file_comment = False

    def blank(self):
        self.end_comment()
        self.block, self.group, self.behind_column = [], None, 0
        self.out.append("")

    def code(self, indent: str, text: str):
        self.end_comment()
        self.behind_column = 0
        starts = self.at_start
        match = BEHIND_CODE.match(indent + text)
        is_documented = bool(self.block)
        statement = (match["code"] if match else text).strip()
        is_function = FUNCTION.match(statement) and not NO_FUNCTION.match(statement)
        prefix = ""
        if self.block:
            self.group = (indent, self.block) if is_function else None
        elif starts and not (match and not IGNORED.match(match["text"])):
            prefix = self.implied(indent, statement, is_function)
        self.block = []
        if match and not IGNORED.match(match["text"]):
            if not is_documented:
                self.group = None
            self.behind_column = len(match["code"])
            if is_function and statement.endswith("{") and not is_documented:
                self.out.append(f"{indent}/** {escaped(match['text'])} */ {statement}")
            else:
                mark = "// " if is_documented and is_function else "///< "
                self.out.append(f"{match['code']}{mark}{escaped(match['text'])}")
        else:
            self.out.append(indent + prefix + text)
        self.at_start = bool(STARTS_A_STATEMENT.search(statement)) or statement.startswith("#")

    def implied(self, indent: str, statement: str, is_function) -> str:
        for pattern, text in CONVENTIONS:
            if pattern.match(statement):
                return f"/** {text} */ "
        if is_function and self.group and self.group[0] == indent:
            return f"/** {' '.join(self.group[1])} */ "
        return ""

    def line(self, line: str):
        if several := SEVERAL.match(line):
            sentences = " ".join(self.block)
            for i, member in enumerate(several["members"].split(", ")):
                prefix = f"/** {sentences} */ " if i > 0 and sentences else ""
                self.code(several["indent"], f"{prefix}{several['type']} {member};{several['rest']}")
            return
        text = line.lstrip()
        indent = line[:len(line) - len(text)]
        if not text:
            self.blank()
        elif text.startswith("//") and not IGNORED.match(text[2:]):
            self.comment(indent, text[2:])
        else:
            self.code(indent, text)


if __name__ == "__main__":
    one = Filter()
    with open(sys.argv[1], encoding="utf-8") as header:
        # Doxygen takes explicit instantiations for declarations; lines keep their numbers.
        text = INSTANTIATION.sub(lambda match: "\n" * match[0].count("\n"), header.read())
        for each in text.splitlines():
            one.line(each)
    print("\n".join(one.out))
