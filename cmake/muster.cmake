# SPDX-License-Identifier: MIT
# A function per idea: a layer, a program, a test.

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH MUSTER_TREE)
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)

add_library(muster_build INTERFACE)
target_compile_options(muster_build INTERFACE -Wall -Wextra -Wconversion -Wshadow
	-ffp-contract=off -fno-strict-aliasing)
option(MUSTER_WERROR "take warnings for errors; the presets do" OFF) # a new compiler has new warnings
if(MUSTER_WERROR)
	target_compile_options(muster_build INTERFACE -Werror)
endif()
target_compile_definitions(muster_build INTERFACE _GNU_SOURCE MST_VERSION="${PROJECT_VERSION}")
target_include_directories(muster_build INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

set(MUSTER_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize takes them")
if(MUSTER_SANITIZE)
	target_compile_options(muster_build INTERFACE -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer
		-fno-sanitize-recover=all)
	target_link_options(muster_build INTERFACE -fsanitize=${MUSTER_SANITIZE})
	include(${CMAKE_CURRENT_LIST_DIR}/sanitize.cmake)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/harden.cmake)

option(MUSTER_COVERAGE "count which lines the tests execute" OFF) # target coverage shows them
if(MUSTER_COVERAGE)
	# Atomic: several threads count the same line.
	target_compile_options(muster_build INTERFACE --coverage -fprofile-update=atomic -fprofile-abs-path)
	target_link_options(muster_build INTERFACE --coverage)
endif()

# muster_layer(NAME SOURCES a.c b.c USES base wire LINKS Threads::Threads)
# One static library per layer; USES are lower layers, so that a call upwards is an undefined symbol.
function(muster_layer name)
	cmake_parse_arguments(ARG "" "" "SOURCES;USES;LINKS" ${ARGN})
	add_library(mst_${name} STATIC ${ARG_SOURCES})
	target_link_libraries(mst_${name} PRIVATE muster_build)
	foreach(layer ${ARG_USES})
		target_link_libraries(mst_${name} PUBLIC mst_${layer})
	endforeach()
	target_link_libraries(mst_${name} PUBLIC ${ARG_LINKS})
endfunction()

# muster_sources(PROGRAM a.c ...): gives PROGRAM these sources, after what it links. A source is compiled
# once for all programs that have it, in an object library of its own, with what the first of them links.
# All that layers add to the flags is where foreign headers are, and a source that compiles for one
# program finds its headers for all. A program has no flags of its own, either: what needs some is a target that
# has them, of which the program takes the $<TARGET_OBJECTS>, as in tests/bench.
function(muster_sources program)
	get_target_property(links ${program} LINK_LIBRARIES)
	foreach(source ${ARGN})
		if(NOT source MATCHES "TARGET_OBJECTS")
			cmake_path(ABSOLUTE_PATH source NORMALIZE)
			cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${MUSTER_TREE} OUTPUT_VARIABLE object)
			string(MAKE_C_IDENTIFIER "object_${object}" object)
			if(NOT TARGET ${object})
				add_library(${object} OBJECT ${source})
				target_link_libraries(${object} PRIVATE ${links})
			endif()
			set(source $<TARGET_OBJECTS:${object}>)
		endif()
		target_sources(${program} PRIVATE ${source})
	endforeach()
endfunction()

# muster_program(NAME SOURCES main.c USES config LINKS ... [INSTALL])
function(muster_program name)
	cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;USES;LINKS" ${ARGN})
	list(TRANSFORM ARG_USES PREPEND mst_ OUTPUT_VARIABLE layers)
	add_executable(${name})
	target_link_libraries(${name} PRIVATE muster_build ${layers} ${ARG_LINKS})
	muster_sources(${name} ${ARG_SOURCES})
	if(ARG_INSTALL)
		install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
	endif()
endfunction()

# Layers that start no thread; base does, for the log, where a program asks for it.
set(MUSTER_ONE_THREAD wire host delay config kernels checkpoint optim_rows optim core options plan data
	cluster session digits openblas planner simulator)

# muster_one_thread(OUT layer ...): "one-thread" where none of the LAYERS starts a thread, else
# nothing. It is a label: the thread sanitizer would find nothing there (tests/run.sh).
function(muster_one_thread out)
	set(layers ${ARGN})
	list(REMOVE_ITEM layers ${MUSTER_ONE_THREAD})
	set(label "")
	if(ARGN AND layers MATCHES "^(base)?$" AND NOT ARGN STREQUAL base)
		set(label one-thread)
	endif()
	set(${out} "${label}" PARENT_SCOPE)
endfunction()

# muster_blind(OUT LABELS ...): the sanitizer of this build would find nothing in a test with these
# labels: a data race takes two threads. Such a test is not there, nor is its program built.
function(muster_blind out)
	set(${out} OFF PARENT_SCOPE)
	if(MUSTER_SANITIZE MATCHES thread AND one-thread IN_LIST ARGN)
		set(${out} ON PARENT_SCOPE)
	endif()
endfunction()

# muster_keep_one_thread(TARGET LABELS ...): what is labelled one-thread ends if it starts another.
function(muster_keep_one_thread target)
	if(one-thread IN_LIST ARGN)
		muster_sources(${target} ${MUSTER_TREE}/tests/one_thread.c)
		target_link_options(${target} PRIVATE -Wl,--wrap=pthread_create)
	endif()
endfunction()

# muster_test(NAME SOURCES test_x.c USES core LABELS unit quick [ARGS ...] [TIMEOUT 240] [...])
# One CUnit program that links only what it tests; 77 means skipped. Where a layer is not built, the
# program is not either, and the test skips. What else muster_run() takes is passed on. By what it
# uses it is labelled one-thread.
function(muster_test name)
	cmake_parse_arguments(ARG "" "TIMEOUT;SLOTS;SECONDS" "SOURCES;USES;LINKS;LABELS;ARGS;LOCKS" ${ARGN})
	string(REPLACE "." "_" target test_${name})
	list(TRANSFORM ARG_USES PREPEND mst_ OUTPUT_VARIABLE layers)
	muster_one_thread(one_thread ${ARG_USES})
	list(APPEND ARG_LABELS ${one_thread})
	muster_run(${name} COMMAND ${target} ${ARG_ARGS} LABELS ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT}
		NEEDS ${layers} SLOTS ${ARG_SLOTS} SECONDS ${ARG_SECONDS} LOCKS ${ARG_LOCKS})
	muster_lacks(lacking ${layers})
	muster_blind(blind ${ARG_LABELS})
	if(lacking OR blind)
		return()
	endif()
	muster_program(${target} SOURCES ${ARG_SOURCES} USES ut ${ARG_USES} LINKS ${ARG_LINKS})
	if(NOT ARG_LINKS MATCHES "=pthread_create") # where it is another's already
		muster_keep_one_thread(${target} ${ARG_LABELS})
	endif()
endfunction()

# muster_lacks(OUT target ...): those that are not built here.
function(muster_lacks out)
	set(lacking "")
	foreach(target ${ARGN})
		if(NOT TARGET ${target})
			list(APPEND lacking ${target})
		endif()
	endforeach()
	set(${out} ${lacking} PARENT_SCOPE)
endfunction()

# muster_run(NAME COMMAND ... LABELS ... [TIMEOUT 240] [ENVIRONMENT A=b] [NEEDS target ...]
#            [SLOTS 1] [SECONDS n] [LOCKS name ...])
# Where one of the targets NEEDS is not built, the test skips and names it. Tests run side by side:
# tests/run.sh gives them five SLOTS a processor. A test that mostly waits, for a lease or for others,
# takes one; one that computes all the while four. SECONDS is about how long it takes, for those that
# take more than ten: the long ones start first. TIMEOUT is there to end what hangs: it is at least
# ten times as long as the test takes on an idle host. Tests with a LOCK in common do not run at the
# same time. CONTRIBUTING.md says how to choose.
function(muster_run name)
	cmake_parse_arguments(ARG "" "TIMEOUT;SLOTS;SECONDS" "COMMAND;LABELS;ENVIRONMENT;NEEDS;LOCKS" ${ARGN})
	muster_blind(blind ${ARG_LABELS})
	if(blind)
		return()
	endif()
	muster_lacks(lacking ${ARG_NEEDS})
	if(lacking)
		set(ARG_COMMAND sh -c "echo 'skipped: ${lacking} is not built here (cmake says why)' && exit 77")
	endif()
	if(NOT ARG_TIMEOUT)
		set(ARG_TIMEOUT 240)
	endif()
	if(MUSTER_SANITIZE) # a limit is there to end what hangs, not what a sanitizer makes long
		math(EXPR ARG_TIMEOUT "3 * ${ARG_TIMEOUT}")
	endif()
	if(NOT ARG_SLOTS)
		set(ARG_SLOTS 1)
	endif()
	if(NOT ARG_SECONDS)
		set(ARG_SECONDS 1)
	endif()
	add_test(NAME ${name} COMMAND ${ARG_COMMAND})
	set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${ARG_TIMEOUT}
		ENVIRONMENT "${ARG_ENVIRONMENT}" PROCESSORS ${ARG_SLOTS} COST ${ARG_SECONDS}
		RESOURCE_LOCK "${ARG_LOCKS}")
endfunction()

# muster_label(TEST label): one more label of a test, where this build has it: a sanitizer has only some.
function(muster_label test label)
	if(TEST ${test})
		set_property(TEST ${test} APPEND PROPERTY LABELS ${label})
	endif()
endfunction()
