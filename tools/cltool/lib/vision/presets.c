/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements presets.h: one table, each row with the source of its numbers.
 */
#include "presets.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

/* NULL, or a scale of 0: as without the preset. */
typedef struct preset {
    const char *name;
    const char *resize, *crop, *filter, *pad;
    const char *channels, *layout, *mean, *std;
    double scale;
    const char *source;
} preset;

#define IMAGENET_MEAN "0.485,0.456,0.406"
#define IMAGENET_STD "0.229,0.224,0.225"

static const preset presets[] = {
    {"imagenet", "short:256", "224", "bilinear", NULL, "rgb", "nchw", IMAGENET_MEAN, IMAGENET_STD,
     0, "torchvision ImageClassification, crop_size 224 (IMAGENET1K_V1)"},
    {"imagenet-v2", "short:232", "224", "bilinear", NULL, "rgb", "nchw", IMAGENET_MEAN,
     IMAGENET_STD, 0, "torchvision ImageClassification, resize_size 232 (IMAGENET1K_V2)"},
    {"inception", "short:342", "299", "bilinear", NULL, "rgb", "nchw", IMAGENET_MEAN, IMAGENET_STD,
     0, "torchvision Inception_V3_Weights"},
    {"clip", "short:224", "224", "bicubic", NULL, "rgb", "nchw", "0.48145466,0.4578275,0.40821073",
     "0.26862954,0.26130258,0.27577711", 0, "openai/CLIP clip.py _transform"},
    {"siglip", "stretch:224", NULL, "bicubic", NULL, "rgb", "nchw", "0.5", "0.5", 0,
     "transformers SiglipImageProcessor"},
    {"vit", "stretch:224", NULL, "bilinear", NULL, "rgb", "nchw", "0.5", "0.5", 0,
     "transformers ViTImageProcessor"},
    {"dinov2", "short:256", "224", "bicubic", NULL, "rgb", "nchw", IMAGENET_MEAN, IMAGENET_STD, 0,
     "facebook/dinov2 preprocessor_config.json"},
    {"keras-tf", "stretch:224", NULL, "bilinear", NULL, "rgb", "nhwc", "0.5", "0.5", 0,
     "Keras imagenet_utils preprocess_input, mode tf: x / 127.5 - 1"},
    {"keras-caffe", "stretch:224", NULL, "bilinear", NULL, "bgr", "nhwc", "103.939,116.779,123.68",
     NULL, 255, "Keras imagenet_utils preprocess_input, mode caffe"},
    {"segmentation", "short:520", NULL, "bilinear", NULL, "rgb", "nchw", IMAGENET_MEAN,
     IMAGENET_STD, 0, "torchvision SemanticSegmentation, resize_size 520"},
    {"yolo", "pad:640", NULL, "bilinear", "114", "rgb", "nchw", NULL, NULL, 1,
     "ultralytics LetterBox, 640 (YOLOv5 and later); OpenCV's filter there, without antialias"},
    {"yolox", "corner:640", NULL, "bilinear", "114", "bgr", "nchw", NULL, NULL, 255,
     "YOLOX preproc; OpenCV's filter there, without antialias"},
    {"yunet", "corner:640", NULL, "bilinear", NULL, "bgr", "nchw", NULL, NULL, 255,
     "OpenCV FaceDetectorYN: levels as they are, black at the right and below"},
    {"ultraface", "stretch:240x320", NULL, "bilinear", NULL, "rgb", "nchw", "127", "128", 255,
     "Ultra-Light-Fast-Generic-Face-Detector detect_imgs_onnx.py"},
    {"ssd", "stretch:1200", NULL, "bilinear", NULL, "rgb", "nchw", IMAGENET_MEAN, IMAGENET_STD, 0,
     "onnx/models ssd, README"},
    {"detr", "short:800:1333", NULL, "bilinear", NULL, "rgb", "nchw", IMAGENET_MEAN, IMAGENET_STD,
     0, "facebookresearch/detr make_coco_transforms, val"},
    {"rtdetr", "stretch:640", NULL, "bilinear", NULL, "rgb", "nchw", NULL, NULL, 1,
     "transformers RTDetrImageProcessor: no mean"},
};
#define N_PRESETS (sizeof presets / sizeof *presets)

/* The options of a row as text. free(). */
static char *words_of(const preset *p)
{
    const struct {
        const char *option, *text;
    } words[] = {{"resize", p->resize}, {"crop", p->crop},         {"filter", p->filter},
                 {"pad", p->pad},       {"channels", p->channels}, {"layout", p->layout},
                 {"mean", p->mean},     {"std", p->std},           {"scale", NULL}};
    char *all = must_copy("");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const bool is_scale = strcmp(words[i].option, "scale") == 0;
        if (!words[i].text && !(is_scale && p->scale > 0)) continue;
        char *longer = is_scale ? must_printf("%s --scale %g", all, p->scale)
                                : must_printf("%s%s--%s %s", all, all[0] ? " " : "",
                                              words[i].option, words[i].text);
        free(all);
        all = longer;
    }
    return all;
}

bool presets_are_listed(const options *o) { return o->preset && strcmp(o->preset, "list") == 0; }

int presets_print(const options *o)
{
    json_t *list = json_array();
    for (size_t i = 0; i < N_PRESETS; i++) {
        char *words = words_of(&presets[i]);
        if (o->json)
            (void)json_array_append_new(list,
                                        json_pack("{s:s, s:s, s:s}", "name", presets[i].name,
                                                  "options", words, "source", presets[i].source));
        else
            (void)printf("%s\n    %s\n    from %s\n", presets[i].name, words, presets[i].source);
        free(words);
    }
    if (o->json) return output_json(json_pack("{s:o}", "presets", list));
    json_decref(list);
    return CODE_DONE;
}

static void set(const char **option, const char *value)
{
    if (!*option) *option = value;
}

int preset_apply(const options *o, options *out_options)
{
    const char *names[N_PRESETS + 1] = {NULL};
    size_t i = 0;
    *out_options = *o;
    if (!o->preset) return CODE_DONE;
    for (size_t k = 0; k < N_PRESETS; k++) names[k] = presets[k].name;
    const int code = option_word("--preset", o->preset, names, sizeof *names, &i);
    if (code != CODE_DONE) return code;
    const preset *p = &presets[i];
    /* the crop is part of the resizing, which is given or not as a whole */
    if (!o->resize) set(&out_options->crop, p->crop);
    set(&out_options->resize, p->resize);
    set(&out_options->filter, p->filter);
    set(&out_options->pad, p->pad);
    set(&out_options->channels, p->channels);
    set(&out_options->layout, p->layout);
    set(&out_options->mean, p->mean);
    set(&out_options->std, p->std);
    if (o->scale < 0 && p->scale > 0) out_options->scale = p->scale;
    char *words = words_of(p);
    output_note("preset %s: %s", p->name, words);
    free(words);
    return CODE_DONE;
}
