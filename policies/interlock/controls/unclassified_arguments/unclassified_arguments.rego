# METADATA
# title: Unclassified arguments
# description: A sending call carries text in a field that the manifest calls neither destination nor content, under untrusted content.
# custom:
#   code: unclassified_arguments
#   page: docs/controls/unclassified_arguments.md
#   model: >-
#     The call carries text in a field that the operator has not classified, and this conversation has read text from outside.
package interlock.controls.unclassified_arguments

default verdict := {"verdict": "ask", "remedies": ["drop_argument"]}

verdict := {"verdict": "allow"} if lifted

lifted if input.tool.egress == "none"

lifted if input.call.unclassified == []

lifted if input.forecast.untrusted == []
