/* SPDX-License-Identifier: Apache-2.0
 *
 * cltool, the command-line tool of clgraph: finds the command, parses its options, runs it, and
 * prints errors.
 */
#include "box_formats.h"
#include "cltool.h"

#include "host.h"
#include "interrupt.h"
#include "output.h"
#include "presets.h"
#include "progress.h"
#include "standard_streams.h"
#include "suggestion.h"

#include <stdio.h>
#include <string.h>

static const command commands[] = {
    {"devices", "", 0, 0, OPTIONS_DEVICES,
     "every OpenCL device of this machine, and which one is the default", NULL,
     "cltool devices --measure", cmd_devices},
    {"inspect", "MODEL", 1, 1,
     OPTIONS_INSPECT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_FORCE,
     "what a model takes, gives and costs; needs no device",
     "Exits 4 when an operator of the model is not supported; all of them are listed. With "
     "--batch\n"
     "also when the rows of a batch are not known to be independent.",
     "cltool inspect model.onnx --dim batch=8 --ops", cmd_inspect},
    {"run", "MODEL [inputs]", 1, 1,
     OPTIONS_RUN | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL |
         OPTIONS_TOLERANCE | OPTIONS_FORCE,
     "one prediction",
     "An element of an image is (pixel * S - mean) / std, with pixels from 0 to 1 (0 to 255 for "
     "integer inputs). --resize\n"
     "filters as Pillow does: 'stretch' to the input's size; 'crop' keeps the ratio and takes the "
     "centre; 'pad' keeps it\n"
     "too, and centres the image on --pad (black), 'corner' with the image at the top left; "
     "'short:256' makes the shorter\n"
     "side 256, and --crop 224 takes the centre, as torchvision does. PNG, JPEG, WebP and BMP "
     "files, "
     "without colour "
     "profiles and EXIF rotation.\n"
     "Statistics are of finite elements; NaN and infinities are counted.",
     "cltool run digits.onnx --image image=00.png --top 3 --labels labels.txt", cmd_run},
    {"predict", "MODEL -i NAME=DATA... -o NAME=FILE...", 1, 1,
     OPTIONS_PREDICT | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN |
         OPTIONS_MODEL | OPTIONS_FORCE,
     "a dataset through a model: any number of rows, over all selected devices",
     "DATA is a .npy file, a .csv file, an IDX file (*.idx, *-idx3-ubyte, also .gz) or a folder of "
     "images (.png,\n"
     ".jpg, .webp, .bmp, by name); rows are steps of the first axis. Bytes of IDX files with three "
     "axes "
     "are pixels, as those of\n"
     "images. Inputs without the batch are given as for 'cltool run'; --fill gives every row the "
     "same "
     "numbers. Memory does\n"
     "not grow with the dataset, results keep the order of rows, and files appear when they are "
     "complete.\n"
     "FILE is .npy, or .csv or .jsonl with a line for each row; there, --top K has the best "
     "classes "
     "of each.\n"
     "An image that cannot be loaded does not end the run: its row of each output is NaN "
     "(integers: "
     "0), it is listed at\n"
     "the end, and the exit code is 1.\n"
     "As a rank of mpirun or srun, a process computes its part of the rows, on one of the devices; "
     "the ranks write\n"
     "each file together. What is left of a run that ended early is FILE.npy.*.part*, for "
     "--resume.",
     "cltool predict digits.onnx -i image=images/ -o probabilities=answers.npy", cmd_predict},
    {"merge", "SHARD.npy... -o FILE.npy --rows N", 1, SIZE_MAX, OPTIONS_MERGE | OPTIONS_FORCE,
     "joins the shards of 'cltool predict --shard', given in their order",
     "Refused unless the shards have N rows, one dtype and shape of a row, and the sizes that "
     "--shard gives them.",
     "cltool merge part1.npy part2.npy part3.npy -o all.npy --rows 1000", cmd_merge},
    {"verify", "DIR...", 1, SIZE_MAX,
     OPTIONS_VERIFY | OPTIONS_TOLERANCE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL,
     "ONNX test cases: folders with model.onnx and test_data_set_*, or trees of them",
     "What is not supported is skipped, with its reason. Exits 1 when a case fails.",
     "cltool verify --list-skipped /usr/share/libonnx-testdata/data", cmd_verify},
    {"diff", "MODEL [inputs]", 1, 1,
     OPTIONS_DIFF | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL,
     "compares two runs of a model and finds the first node whose values differ",
     "Inputs that are not given are filled with random numbers. Without --atol, floating-point "
     "values may differ\n"
     "by 1e-4 of the largest element (float16 4e-3, bfloat16 3e-2), bytes by 1, other integers not "
     "at all. -v\n"
     "lists every value. Exits 1 when values part.",
     "cltool diff model.onnx -i x.npy -d gpu --against cpu", cmd_diff},
    {"gradient", "MODEL inputs", 1, 1,
     OPTIONS_GRADIENT | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN |
         OPTIONS_MODEL | OPTIONS_FORCE,
     "the gradient of an output or a loss by inputs and weights, and whether it is right",
     "Computes it with respect to every float input and initializer; where the result does not "
     "depend on one, it is zero.\n"
     "Losses are means. cross-entropy takes scores [N,C,...], and FILE holds classes "
     "[N,...]; for the output of a\n"
     "Softmax, what the Softmax reads. nll takes logarithms of probabilities in place of scores. "
     "bce-with-logits\n"
     "takes what a Sigmoid reads, and FILE holds probabilities. For mse, l1 and huber FILE has the "
     "output's shape.\n"
     "--check compares the gradient of each node, at its values in this run, with central "
     "differences along random\n"
     "directions; then that of the whole. Inputs that are not given are random. An error is "
     "relative to the changes that\n"
     "are compared; 5e-3 is allowed in float32, 5e-2 for the whole. What is near a kink is not "
     "checked.",
     "cltool gradient digits.onnx -i heldout.npy --loss cross-entropy "
     "--target labels.npy -o out",
     cmd_gradient},
    {"generate", "DIR --prompt TEXT | DIR --tokens N,N...", 1, 1,
     OPTIONS_GENERATE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL,
     "text from a language model: what follows a prompt",
     "DIR is a folder of onnxruntime-genai (genai_config.json) or of Optimum (config.json and "
     "model.onnx), with\n"
     "tokenizer.json. The prompt is taken as it is: a chat template is the caller's. Text goes to "
     "standard output as\n"
     "it is made, statistics to standard error. A seed gives the same text again: "
     "docs/language-models.md.",
     "cltool generate model/ --prompt 'Once upon a time' --temperature 0.8 --seed 1", cmd_generate},
    {"new", "mlp SIZES | cnn CHANNELSxHEIGHTxWIDTH --dense SIZES", 2, 2,
     OPTIONS_NEW | OPTIONS_FORCE, "a network with random weights, to be trained",
     "mlp    dense layers: 784,128,10 has 784 inputs and 10 outputs; 1x28x28,128,10 takes images\n"
     "cnn    convolutions with --conv, then dense layers\n"
     "The output is \"logits\", the input \"x\" [batch,N], or \"image\" [batch,C,H,W]. A seed "
     "gives the same file on\n"
     "every machine. Formulas of --init: docs/training.md.",
     "cltool new cnn 1x28x28 --conv 32,64 --dense 128,10 --seed 1 -o start.onnx", cmd_new},
    {"train", "MODEL inputs --loss LOSS [--target FILE] -o FILE.onnx", 1, 1,
     OPTIONS_TRAIN | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL |
         OPTIONS_FORCE,
     "trains the weights of a model on rows of data",
     "Rows are shuffled by --seed. Losses, optimizers and their numbers are those of "
     "docs/training.md. A training\n"
     "that is interrupted saves its checkpoint; --resume goes on with the same bits.",
     "cltool train model.onnx -i x.npy --target labels.npy --loss cross-entropy -o trained.onnx",
     cmd_train},
    {"bench", "MODEL [inputs] | --suite [NAMES]", 0, SIZE_MAX,
     OPTIONS_BENCH | OPTIONS_RUNS | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN |
         OPTIONS_MODEL | OPTIONS_TOLERANCE | OPTIONS_FORCE,
     "latency from host values in to host values out",
     "Inputs that are not given are filled with random numbers; they vary between runs. Without "
     "--runs, as many\n"
     "runs as two seconds take, at least 10. --rtol and --atol are for --compare; there --atol is "
     "1e-4 of the\n"
     "largest element unless it is given.\n"
     "--suite measures MLP, LSTM, MobileNetV2, ResNet-50, BERT-base and GPT-2 small with random "
     "weights and batches of\n"
     "1 and 16; NAMES are mlp, lstm, mobilenetv2, resnet50, bert and gpt2. It needs no file and no "
     "network.",
     "cltool bench model.onnx --batch 1,8,64 --each", cmd_bench},
    {"profile", "MODEL [inputs]", 1, 1,
     OPTIONS_PROFILE | OPTIONS_RUNS | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE |
         OPTIONS_PLAN | OPTIONS_MODEL | OPTIONS_FORCE,
     "device time per step and operator, beside what the device can do",
     "Inputs that are not given are filled with random numbers. Without --runs, 10 runs.",
     "cltool profile model.onnx --trace trace.json", cmd_profile},
    {"tune", "MODEL [inputs]", 1, 1,
     OPTIONS_TUNE | OPTIONS_INPUT | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL |
         OPTIONS_FORCE,
     "measures the implementations of a model's nodes, and keeps the fastest",
     "Every later session on this device and driver follows what was kept, for each shape that was "
     "measured.\n"
     "Inputs that are not given are filled with random numbers. 'cltool cache clear' forgets.",
     "cltool tune model.onnx --time 30", cmd_tune},
    {"selftest", "", 0, 0, OPTIONS_SELFTEST | OPTIONS_DEVICE,
     "runs the device's kernels on small problems and compares with references",
     "A report to paste where wrong answers are reported. An error is the largest difference of an "
     "element, over the\n"
     "size of the terms that it is made of. What fails is not used any more on this device and "
     "driver, what passes is.\n"
     "Exits 1 when a kernel fails.",
     "cltool selftest --all --device gpu", cmd_selftest},
    {"report", "[NAMES]", 0, SIZE_MAX,
     OPTIONS_REPORT | OPTIONS_RUNS | OPTIONS_DEVICE | OPTIONS_FORCE,
     "one file about this machine's devices, to attach to an issue",
     "Properties of all devices, the diagnosis of OpenCL, and for each selected device (default: "
     "each GPU, without one\n"
     "the CPU) self-test, peaks and 'bench --suite' of the models NAMES (default: all), as JSON. "
     "It "
     "has no paths, no\n"
     "ids of devices, and no names of the user and the machine: read it before you send it. Takes "
     "minutes.",
     "cltool report -o report.json", cmd_report},
    {"tokenize", "FILE.json [TEXT]", 1, 2, OPTIONS_TOKENIZE,
     "ids of a text and text of ids, by a tokenizer.json",
     "FILE.json is a tokenizer of Hugging Face, or a folder that has a tokenizer.json. The text "
     "'-' "
     "reads standard\n"
     "input. Prints the ids, with -v a line for each token; without a text, the size and the "
     "special "
     "tokens.",
     "cltool tokenize model/ \"Hello world\"", cmd_tokenize},
    {"cache", "path | list | clear | prune | warm MODEL | pack FILE | unpack FILE", 1, 2,
     OPTIONS_CACHE | OPTIONS_SHAPE | OPTIONS_DEVICE | OPTIONS_PLAN | OPTIONS_MODEL | OPTIONS_FORCE,
     "compiled programs, kept on disk",
     "path    prints where it is ($CLG_CACHE_DIR moves it)\n"
     "list    its entries\n"
     "clear   removes all of them\n"
     "prune   removes the least recently used ones beyond --max-size\n"
     "warm    compiles what MODEL needs, ahead of its first run\n"
     "pack    writes all entries into one file, for installers\n"
     "unpack  adds the entries of such a file",
     "cltool cache warm model.onnx --device gpu", cmd_cache},
    {"completion", "bash|zsh|fish", 1, 1, 0, "prints the script by which a shell completes cltool",
     "Packages install it. By hand: source it in ~/.bashrc, or write it to a file _cltool in a "
     "folder of $fpath\n"
     "(zsh), or to ~/.config/fish/completions/cltool.fish.",
     "source <(cltool completion bash)", cmd_completion},
    {"man", "[COMMAND]", 0, 1, 0, "prints the man page of cltool or of a command, in roff", NULL,
     "cltool man run | man -l -", cmd_man},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

const command *commands_all(size_t *out_n)
{
    *out_n = N_COMMANDS;
    return commands;
}

int command_find(const char *name, size_t *out_index)
{
    suggestion s;
    suggestion_begin(&s, name);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        *out_index = i;
        if (strcmp(commands[i].name, name) == 0) return CODE_DONE;
        suggestion_offer(&s, commands[i].name);
    }
    (void)fail_usage("there is no command '%s'", printable(name));
    if (!suggestion_hint(&s)) fail_hint("'cltool --help' lists the commands");
    return CODE_USAGE;
}

static int print_overview(void)
{
    (void)printf("cltool %s: neural-network prediction on any OpenCL device\n\n", clg_version());
    (void)printf("usage: cltool COMMAND [options] [arguments]\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        (void)printf("  %-10s  %s\n", commands[i].name, commands[i].what);
    (void)printf("\n'cltool COMMAND --help' shows a command's options and an example.\n");
    (void)printf("\nexit codes\n");
    for (size_t i = 0; i < N_EXIT_WORDS; i++)
        (void)printf("  %3d  %s\n", exit_words[i].code, exit_words[i].meaning);
    return CODE_DONE;
}

static int print_help(const command *c)
{
    (void)printf("usage: cltool %s%s%s [options]\n\n%s\n", c->name, c->arguments[0] ? " " : "",
                 c->arguments, c->what);
    if (c->more) (void)printf("\n%s\n", c->more);
    for (size_t i = 0; i < N_OPTION_SECTIONS; i++) {
        const unsigned groups = (c->groups | OPTIONS_ALL) & option_sections[i].groups;
        if (!groups) continue;
        (void)printf("\n%s\n", option_sections[i].title);
        options_print(groups);
    }
    (void)printf("\nexample\n  %s\n", c->example);
    return CODE_DONE;
}

static void log_message(void *user, clg_log_level level, const char *message)
{
    (void)user;
    if (level <= CLG_LOG_WARNING)
        output_warning("%s", message);
    else
        output_note("%s", message);
}

static void setup_log(const options *o)
{
    const clg_log_level level = o->quiet         ? CLG_LOG_ERROR
                                : o->verbose > 1 ? CLG_LOG_DEBUG
                                : o->verbose > 0 ? CLG_LOG_INFO
                                                 : CLG_LOG_WARNING;
    clg_set_log(log_message, NULL, level);
}

static int check_arguments(const command *c, const options *o)
{
    if (o->n_arguments < c->min_arguments) {
        (void)fail_usage("'cltool %s' needs %s", c->name, c->arguments);
    } else if (o->n_arguments > c->max_arguments) {
        (void)fail_usage("'cltool %s' does not know what to do with '%s'", c->name,
                         o->arguments[c->max_arguments]);
    } else {
        return CODE_DONE;
    }
    fail_hint("'cltool %s --help'", c->name);
    return CODE_USAGE;
}

static int run_command(const command *c, int argc, char **argv)
{
    options o;
    int code = options_parse(&o, c->name, c->groups | OPTIONS_ALL, argc, argv);
    o.shows_early = c->run == cmd_run || c->run == cmd_generate;
    output_setup(o.quiet);
    interrupt_setup(o.json, o.quiet);
    setup_log(&o);
    if (code == CODE_DONE && o.help) {
        code = print_help(c);
    } else if (code == CODE_DONE && presets_are_listed(&o)) {
        code = presets_print(&o);
    } else if (code == CODE_DONE && box_formats_are_listed(&o)) {
        code = box_formats_print(&o);
    } else {
        if (code == CODE_DONE) code = check_arguments(c, &o);
        if (code == CODE_DONE) code = c->run(&o);
    }
    options_deinit(&o);
    return code;
}

static bool asks_for_json(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) return true;
    }
    return false;
}

static int dispatch(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    size_t i;
    if (argc < 2) {
        (void)fail_usage("which command?");
        fail_hint("'cltool --help' lists the commands");
        return CODE_USAGE;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        (void)printf("cltool %s\n", clg_version());
        return CODE_DONE;
    }
    const bool helps =
        strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0;
    if (helps && argc == 2) return print_overview();
    const int code = command_find(argv[helps ? 2 : 1], &i);
    if (code != CODE_DONE) return code;
    return helps ? print_help(&commands[i]) : run_command(&commands[i], argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    argv = host_start(argv);
    for (argc = 0; argv && argv[argc];) argc++;
    int code = argv ? dispatch(argc, argv) : fail_usage("an argument is not valid Unicode");
    bool json = asks_for_json(argc, argv);
    if (code != CODE_DONE) failure_print(json);
    standard_streams_end();
    int written = output_finish();
    if (written != CODE_DONE && code == CODE_DONE) {
        failure_print(false);
        code = written;
    }
    return code;
}
