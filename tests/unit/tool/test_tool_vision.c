/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests places of images in inputs, the way back, and boxes.
 */
#include "support/unit.h"

#include <math.h>

/* Both cmocka and cltool have a macro of this name; the tests need cmocka's. */
#undef fail
#include "boxes.h"
#include "place.h"
#undef fail
#define fail() _fail(__FILE__, __LINE__)

TEST_GROUP(NULL, NULL)

TEST(place__centre_crops_round_half_to_even)
{
    static const struct {
        int size, crop;
        int64_t first;
    } cases[] = {{10, 4, 3}, {11, 4, 4}, {13, 4, 4}, {4, 10, -3}, {4, 11, -3}, {4, 4, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int n = cases[i].crop;
        const resize_rule rule = {.crop_width = n, .crop_height = n};
        const image_place place = place_image(&rule, cases[i].size, cases[i].size, n, n);
        assert_int_equal(place.x.first, cases[i].first);
        assert_int_equal(place.y.first, cases[i].first);
        assert_int_equal(place.x.size, cases[i].size);
    }
}

TEST(place__shorter_sides_round_the_longer_down)
{
    static const struct {
        int64_t side, maximum;
        int width, height, want_width, want_height;
    } cases[] = {{256, 0, 500, 375, 341, 256},      {256, 0, 375, 500, 256, 341},
                 {256, 0, 256, 256, 256, 256},      {800, 1333, 640, 480, 1066, 800},
                 {800, 1333, 1000, 500, 1333, 666}, {5, 0, 3, 16777216, 5, 27962026}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const resize_rule rule = {
            .kind = RESIZE_SHORT, .short_side = cases[i].side, .maximum = cases[i].maximum};
        int width, height;
        place_size(&rule, cases[i].width, cases[i].height, &width, &height);
        assert_int_equal(width, cases[i].want_width);
        assert_int_equal(height, cases[i].want_height);
    }
}

TEST(place__positions_go_back_to_the_image)
{
    static const resize_kind kinds[] = {RESIZE_STRETCH, RESIZE_CROP, RESIZE_PAD, RESIZE_CORNER};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const resize_rule rule = {.kind = kinds[i]};
        const image_place place = place_image(&rule, 640, 480, 320, 320);
        const double x = 100.0 * (double)place.x.size / 640 - (double)place.x.first;
        assert_true(place_back(&place.x, 640, x) == 100.0);
    }
}

TEST(boxes__overlap_is_shared_over_covered_area)
{
    const box a = {0, 0, 4, 4, 1, 0}, b = {2, 0, 6, 4, 1, 0}, c = {4, 0, 8, 4, 1, 0};
    const box none = {1, 1, 1, 1, 1, 0};
    assert_true(boxes_overlap(&a, &a) == 1);
    assert_true(boxes_overlap(&a, &b) == 8.0 / 24);
    assert_true(boxes_overlap(&a, &c) == 0);
    assert_true(boxes_overlap(&none, &none) == 0);
}

TEST(boxes__suppression_keeps_the_best_of_each_class)
{
    static const box given[] = {{0, 0, 4, 4, 0.5, 0},   {0, 0, 4, 4, 0.9, 0},
                                {1, 0, 5, 4, 0.8, 0},   {0, 0, 4, 4, 0.7, 1},
                                {9, 9, 12, 12, 0.6, 0}, {0, 0, 4, INFINITY, 1, 0},
                                {0, 0, 4, 4, NAN, 0}};
    box_list list = {0};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) boxes_add(&list, given[i]);
    assert_int_equal(list.count, 5); /* not those with numbers that are none */
    assert_int_equal(boxes_sort(&list, 4), 1);
    assert_true(list.items[0].score == 0.9 && list.items[3].score == 0.6);
    boxes_suppress(&list, 0.5);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.items[1].class_index, 1);
    boxes_limit(&list, 10, 10);
    assert_int_equal(list.count, 3);
    assert_true(list.items[2].right == 10 && list.items[2].bottom == 10);
    boxes_limit(&list, 9, 10);
    assert_int_equal(list.count, 2);
    boxes_free(&list);
}
