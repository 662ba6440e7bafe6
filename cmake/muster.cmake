# SPDX-License-Identifier: MIT
# A function per idea: a layer, a program, a test.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)

add_library(muster_build INTERFACE)
target_compile_options(muster_build INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror
	-ffp-contract=off -fno-strict-aliasing)
target_compile_definitions(muster_build INTERFACE _GNU_SOURCE MST_VERSION="${PROJECT_VERSION}")
target_include_directories(muster_build INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)

set(MUSTER_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize takes them")
if(MUSTER_SANITIZE)
	target_compile_options(muster_build INTERFACE -fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer
		-fno-sanitize-recover=all)
	target_link_options(muster_build INTERFACE -fsanitize=${MUSTER_SANITIZE})
endif()

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

# muster_program(NAME SOURCES main.c USES config LINKS ... [INSTALL])
function(muster_program name)
	cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;USES;LINKS" ${ARGN})
	add_executable(${name} ${ARG_SOURCES})
	target_link_libraries(${name} PRIVATE muster_build)
	foreach(layer ${ARG_USES})
		target_link_libraries(${name} PRIVATE mst_${layer})
	endforeach()
	target_link_libraries(${name} PRIVATE ${ARG_LINKS})
	if(ARG_INSTALL)
		install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
	endif()
endfunction()

# muster_test(NAME SOURCES test_x.c USES core LABELS unit quick [ARGS ...] [TIMEOUT 60])
# One CUnit program that links only what it tests; 77 means skipped.
function(muster_test name)
	cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;USES;LINKS;LABELS;ARGS" ${ARGN})
	string(REPLACE "." "_" target test_${name})
	add_executable(${target} ${ARG_SOURCES})
	target_link_libraries(${target} PRIVATE muster_build mst_ut)
	foreach(layer ${ARG_USES})
		target_link_libraries(${target} PRIVATE mst_${layer})
	endforeach()
	target_link_libraries(${target} PRIVATE ${ARG_LINKS})
	muster_run(${name} COMMAND ${target} ${ARG_ARGS} LABELS ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT})
endfunction()

# muster_run(NAME COMMAND ... LABELS ... [TIMEOUT 60] [ENVIRONMENT A=b])
function(muster_run name)
	cmake_parse_arguments(ARG "" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
	if(NOT ARG_TIMEOUT)
		set(ARG_TIMEOUT 60)
	endif()
	add_test(NAME ${name} COMMAND ${ARG_COMMAND})
	set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT ${ARG_TIMEOUT}
		ENVIRONMENT "${ARG_ENVIRONMENT}")
	if("system" IN_LIST ARG_LABELS OR "vm" IN_LIST ARG_LABELS) # several processes that keep time: they want the machine alone
		set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
	endif()
endfunction()
