# The migration of the example.
require_relative '../../../../../examples/ruby/orders'
