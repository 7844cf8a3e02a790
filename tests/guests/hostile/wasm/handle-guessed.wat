;; Gives back every handle that it could think of.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (local $handle i32)
      (loop
        (call $drop (local.get $handle))
        (local.set $handle (i32.add (local.get $handle) (i32.const 1)))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
