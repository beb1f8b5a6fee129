# METADATA
# title: Entry point
# description: The answer of every control by its code. The gate asks for this and for nothing else.
# entrypoint: true
package interlock.entrypoint

# METADATA
# scope: document
# description: A control that is silent is missing here, and the gate denies for it.
answers[code] := control.verdict if some code, control in data.interlock.controls

answers[code] := control.verdict if some code, control in data.controls
